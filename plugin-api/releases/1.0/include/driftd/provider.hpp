// SPDX-License-Identifier: Apache-2.0
// C++20 SDK of the provider ABI: derive from driftd::sdk::Instance, describe the plugin with a driftd::sdk::Plugin, and
// write DRIFTD_PROVIDER(plugin_function). Exceptions never cross the border: a Failure becomes its status and a
// diagnostic, anything else DRIFTD_INTERNAL with its text.
#pragma once

#include "driftd/sdk/extension_tables.hpp"
#include "driftd/sdk/older_host.hpp"
#include "driftd/sdk/scope.hpp"

namespace driftd::sdk::detail {

/// The tables for one plugin function `P`; static, so that the same library may be opened for many backends.
template <const Plugin& (*P)()>
struct Table {
  static driftd_status describe(driftd_push_fn push, void* user) {
    return guarded([&] { return push(user, str(P().describe)), DRIFTD_OK; });
  }
  static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
    return guarded([&] {
      const auto found = P().schemas.find(std::string(view(what)));
      if (found == P().schemas.end()) return DRIFTD_NOT_FOUND;
      return push(user, str(found->second)), DRIFTD_OK;
    });
  }
  static driftd_status open(driftd_call handle, const driftd_open_args* given, driftd_instance* out) {
    return guarded(handle, [&](Call& call) {
      const auto args = adopt(given);
      auto made = P().open(call, view(args.backend), view(args.settings));
      if (made == nullptr) throw Failure(DRIFTD_INTERNAL, "the provider's open gave no instance; throw a Failure that says why");
      *out = made.release();
    });
  }
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
  static driftd_status diff(driftd_instance instance, const driftd_diff_args* given, driftd_verdict_fn push, void* user) {
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
  /// A system that is down is a report, not a failure.
  static Health health_of(driftd_instance instance, Call& call) {
    try {
      return self(instance).health(call);
    } catch (const Failure& e) {
      if (e.code != DRIFTD_UNAVAILABLE) throw;
      return {DRIFTD_HEALTH_DOWN, 0, e.what()};
    }
  }
  static driftd_status health(driftd_instance instance, driftd_call handle, driftd_health_fn push, void* user) {
    return guarded(handle, [&](Call& call) {
      const Health h = health_of(instance, call);
      const driftd_health out{sizeof out,  h.state,     h.latency_us, str(h.reason),
                              str(h.role), str(h.system_identity), str(h.server_version)};
      push(user, &out);
    });
  }
  static void wake(driftd_instance instance) {
    guarded([&] { return self(instance).wake(), DRIFTD_OK; });
  }
  static void close(driftd_instance instance) {
    guarded([&] { return delete static_cast<Instance*>(instance), DRIFTD_OK; });
  }
  static constexpr driftd_provider_table kTable{
      sizeof(driftd_provider_table), 0,     &describe, &schema, &open,   &read,
      &refresh,                      &diff, &health,   &wake,   &close,  &ExtensionTables<P>::query};
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

/// Defines the one exported symbol for `const driftd::sdk::Plugin& plugin()`.
#define DRIFTD_PROVIDER(plugin)                                                                                    \
  extern "C" DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* host, const driftd_offer* offer, \
                                                            driftd_accept* out) {                                  \
    return driftd::sdk::detail::Table<&plugin>::entry(host, offer, out);                                           \
  }
