// SPDX-License-Identifier: Apache-2.0
// C++20 SDK of the provider ABI: derive from driftd::sdk::Instance, describe the plugin with a driftd::sdk::Plugin, and
// write DRIFTD_PROVIDER(plugin_function). Exceptions never cross the border: a Failure becomes its status and a
// diagnostic, anything else DRIFTD_INTERNAL with its text. A provider includes this header only. Where to look next:
//   sdk/instance.hpp     what a provider implements
//   sdk/call.hpp         what it may ask of the host in a call
//   sdk/types.hpp        records, diagnostics, health
//   sdk/extensions.hpp   values of diff, discover and apply
//   sdk/scope.hpp        the settings include and exclude
// Its refresh(), in the shortest form (examples/providers/cpp has a whole provider):
//   RefreshResult refresh(Call& call, const Refresh&) override {
//     call.emit({.kind = "thing", .id = "a", .body = R"({"size": 1})"});
//     call.complete("thing", 1);  // all of that kind were emitted: only now one that is missing may be gone
//     return {};
//   }
#pragma once

#include "driftd/sdk/extension_tables.hpp"
#include "driftd/sdk/older_host.hpp"
#include "driftd/sdk/scope.hpp"

namespace driftd::sdk::detail {

/// The tables for one plugin function `P`; static, so that the same library may be opened for many backends. Each
/// function converts the arguments of the ABI, calls the Plugin or the Instance on the host's thread, and turns what is
/// thrown into a status. All that an argument points to is the host's and lasts until the call returns.
template <const Plugin& (*P)()>
struct Table {
  /// Pushes Plugin::describe as it is; the host refuses a plugin whose text differs from one time to the next.
  static driftd_status describe(driftd_push_fn push, void* user) {
    return guarded([&] { return push(user, str(P().describe)), DRIFTD_OK; });
  }
  /// Pushes the document of Plugin::schemas; NOT_FOUND for a name that is not in it.
  static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
    return guarded([&] {
      const auto found = P().schemas.find(std::string(view(what)));
      if (found == P().schemas.end()) return DRIFTD_NOT_FOUND;
      return push(user, str(found->second)), DRIFTD_OK;
    });
  }
  /// Makes the instance and gives it to the host, which ends it with close(). `out` is untouched on failure.
  static driftd_status open(driftd_call handle, const driftd_open_args* given, driftd_instance* out) {
    return guarded(handle, [&](Call& call) {
      const auto args = adopt(given);
      auto made = P().open(call, view(args.backend), view(args.settings));
      if (made == nullptr)
        throw Failure(DRIFTD_INTERNAL, "the provider's open gave no instance; throw a Failure that says why");
      *out = made.release();
    });
  }
  /// Copies the identities by the host's stride and passes them to Instance::read.
  static driftd_status read(driftd_instance instance, driftd_call handle, const driftd_identity* ids,
                            std::uint32_t count, std::uint32_t stride) {
    return guarded(handle, [&](Call& call) {
      std::vector<Identity> wanted;
      const auto* at = reinterpret_cast<const char*>(ids);
      for (std::uint32_t i = 0; i < count; ++i, at += stride) {
        const auto id = adopt(reinterpret_cast<const driftd_identity*>(at));
        wanted.push_back({std::string(view(id.kind)), std::string(view(id.id)), std::string(view(id.backend))});
      }
      self(instance).read(call, wanted);
    });
  }
  /// Passes the request to Instance::refresh. `result` keeps the host's zeros if that throws.
  static driftd_status refresh(driftd_instance instance, driftd_call handle, const driftd_refresh_args* given,
                               driftd_refresh_result* result) {
    return guarded(handle, [&](Call& call) {
      const auto args = adopt(given);
      Refresh request{(args.flags & DRIFTD_REFRESH_FULL) != 0, std::string(view(args.cursor)), {}};
      for (std::uint32_t i = 0; i < args.kind_count; ++i) request.kinds.emplace_back(view(args.kinds[i]));
      const RefreshResult out = self(instance).refresh(call, request);
      result->unchanged = out.unchanged ? 1 : 0;
      result->next_ms = out.next_ms;
    });
  }
  /// UNSUPPORTED unless Plugin::has_diff. Has no call, so the text of a Failure is lost and only its code is left.
  static driftd_status diff(driftd_instance instance, const driftd_diff_args* given, driftd_verdict_fn push,
                            void* user) {
    return guarded([&] {
      if (!P().has_diff) return DRIFTD_UNSUPPORTED;
      const auto args = adopt(given);
      const Identity id{std::string(view(args.kind)), std::string(view(args.id)), {}};
      const auto changes = changes_of(args.changes, args.change_count, args.change_stride);
      for (const auto& v : self(instance).diff(id, changes)) {
        const driftd_verdict out{sizeof out, v.index, v.verdict, 0, str(v.reason)};
        push(user, &out);
      }
      return DRIFTD_OK;
    });
  }
  /// A system that is down is a report, not a failure: a Failure with UNAVAILABLE becomes DOWN with its text.
  static Health health_of(driftd_instance instance, Call& call) {
    try {
      return self(instance).health(call);
    } catch (const Failure& e) {
      if (e.code != DRIFTD_UNAVAILABLE) throw;
      return {DRIFTD_HEALTH_DOWN, 0, e.what()};
    }
  }
  /// Pushes exactly one report, or none and a status.
  static driftd_status health(driftd_instance instance, driftd_call handle, driftd_health_fn push, void* user) {
    return guarded(handle, [&](Call& call) {
      const Health h = health_of(instance, call);
      const driftd_health out{
          sizeof out, h.state, h.latency_us, str(h.reason), str(h.role), str(h.system_identity), str(h.server_version)};
      push(user, &out);
    });
  }
  /// Has no status, so what Instance::wake throws is lost.
  static void wake(driftd_instance instance) {
    guarded([&] { return self(instance).wake(), DRIFTD_OK; });
  }
  /// Deletes the instance, on a thread of the host; no other call is in progress.
  static void close(driftd_instance instance) {
    guarded([&] { return delete static_cast<Instance*>(instance), DRIFTD_OK; });
  }
  /// All slots are filled: what a plugin does not have answers UNSUPPORTED.
  static constexpr driftd_provider_table kTable{
      sizeof(driftd_provider_table), 0, &describe, &schema, &open, &read, &refresh, &diff, &health, &wake, &close,
      &ExtensionTables<P>::query};
  /// What the exported symbol does: keeps the host's table and hands out ours. Always OK; may be called again.
  static driftd_status entry(const driftd_host_table* table, const driftd_offer*, driftd_accept* out) {
    // minor_needed is 0: any host of this major will do
    take_host(table);
    out->minor_built = DRIFTD_ABI_MINOR;
    out->minor_needed = 0;
    out->table = &kTable;
    return DRIFTD_OK;
  }
};

}  // namespace driftd::sdk::detail

/// Defines the one exported symbol for `const driftd::sdk::Plugin& plugin()`. Write it once in a library, outside of
/// any namespace; everything else of the library should be hidden.
#define DRIFTD_PROVIDER(plugin)                                                                                       \
  extern "C" DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* host, const driftd_offer* offer, \
                                                            driftd_accept* out) {                                     \
    return driftd::sdk::detail::Table<&plugin>::entry(host, offer, out);                                              \
  }
