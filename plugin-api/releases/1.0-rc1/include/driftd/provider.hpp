// SPDX-License-Identifier: Apache-2.0
// C++20 SDK of the provider ABI: derive from driftd::sdk::Instance, describe the plugin with a driftd::sdk::Plugin, and
// write DRIFTD_PROVIDER(plugin_function). Exceptions never cross the border: a Failure becomes its status and a
// diagnostic, anything else DRIFTD_INTERNAL with its text.
#pragma once

#include <memory>
#include <span>

#include "driftd/ext/watch.h"
#include "driftd/sdk/barrier.hpp"
#include "driftd/sdk/scope.hpp"

namespace driftd::sdk {

/// One opened backend. Functions other than close may run at once, up to the declared concurrency; wake at any time.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual RefreshResult refresh(Call& call, const Refresh& request) = 0;
  /// Emits each identity; for one that does not exist calls not_found(call, id).
  virtual void read(Call& call, std::span<const Identity> ids) = 0;
  virtual Health health(Call& call) = 0;
  virtual void wake() {}
  /// Blocks until call.cancelled(); only called when Plugin::has_watch.
  virtual void watch(Call&, const std::string& /*cursor*/) {}

 protected:
  static void not_found(Call& call, const Identity& id) { call.diag({DRIFTD_NOT_FOUND, id.kind, id.id, {}, "gone", {}, 0}); }
};

/// A plugin as described to the host; static for the life of the process.
struct Plugin {
  std::string describe;                         ///< JSON, see driftd_provider_table.describe
  std::map<std::string, std::string> schemas;   ///< "settings" and one driftd-schema/1 document per kind
  bool has_watch = false;
  std::unique_ptr<Instance> (*open)(Call& call, std::string_view backend, std::string_view settings) = nullptr;
};

namespace detail {

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
  static driftd_status open(driftd_call handle, const driftd_open_args* args, driftd_instance* out) {
    return guarded(handle, [&](Call& call) { *out = P().open(call, view(args->backend), view(args->settings)).release(); });
  }
  static Instance& self(driftd_instance instance) { return *static_cast<Instance*>(instance); }
  static driftd_status read(driftd_instance instance, driftd_call handle, const driftd_identity* ids,
                            std::uint32_t count, std::uint32_t stride) {
    return guarded(handle, [&](Call& call) {
      std::vector<Identity> wanted;
      const auto* at = reinterpret_cast<const char*>(ids);
      for (std::uint32_t i = 0; i < count; ++i, at += stride) {
        const auto& id = *reinterpret_cast<const driftd_identity*>(at);
        wanted.push_back({std::string(view(id.kind)), std::string(view(id.id))});
      }
      self(instance).read(call, wanted);
    });
  }
  static driftd_status refresh(driftd_instance instance, driftd_call handle, const driftd_refresh_args* args,
                               driftd_refresh_result* result) {
    return guarded(handle, [&](Call& call) {
      Refresh request{(args->flags & DRIFTD_REFRESH_FULL) != 0, std::string(view(args->cursor)), {}};
      for (std::uint32_t i = 0; i < args->kind_count; ++i) request.kinds.emplace_back(view(args->kinds[i]));
      const RefreshResult out = self(instance).refresh(call, request);
      result->unchanged = out.unchanged ? 1 : 0;
      result->next_ms = out.next_ms;
    });
  }
  static driftd_status diff(driftd_instance, const driftd_diff_args*, driftd_verdict_fn, void*) {
    return DRIFTD_UNSUPPORTED;
  }
  static driftd_status health(driftd_instance instance, driftd_call handle, driftd_health_fn push, void* user) {
    return guarded(handle, [&](Call& call) {
      const Health h = self(instance).health(call);
      const driftd_health out{sizeof out,  h.state,     h.latency_us, str(h.reason),
                              str(h.role), str(h.system_identity), str(h.server_version)};
      push(user, &out);
    });
  }
  static void wake(driftd_instance instance) {
    guarded([&] { return self(instance).wake(), DRIFTD_OK; });
  }
  static void close(driftd_instance instance) { delete static_cast<Instance*>(instance); }
  static driftd_status watch(driftd_instance instance, driftd_call handle, const driftd_watch_args* args) {
    return guarded(handle, [&](Call& call) { self(instance).watch(call, std::string(view(args->cursor))); });
  }
  static const void* query(driftd_str id, std::uint32_t revision) {
    static constexpr driftd_watch_table kWatch{sizeof(driftd_watch_table), 0, &watch};
    const bool wanted = view(id) == DRIFTD_EXT_WATCH && revision == DRIFTD_EXT_WATCH_REVISION;
    const bool offered = wanted && guarded([] { return P().has_watch ? DRIFTD_OK : DRIFTD_UNSUPPORTED; }) == DRIFTD_OK;
    return offered ? &kWatch : nullptr;
  }
  static constexpr driftd_provider_table kTable{sizeof(driftd_provider_table), 0,       &describe, &schema, &open, &read,
                                                &refresh,      &diff,   &health,   &wake,   &close, &query};
  static driftd_status entry(const driftd_host_table* table, const driftd_offer*, driftd_accept* out) {
    // minor_needed is 0: any host of this major will do
    host = table;
    out->minor_built = DRIFTD_ABI_MINOR;
    out->minor_needed = 0;
    out->table = &kTable;
    return DRIFTD_OK;
  }
};

}  // namespace detail
}  // namespace driftd::sdk

/// Defines the one exported symbol for `const driftd::sdk::Plugin& plugin()`.
#define DRIFTD_PROVIDER(plugin)                                                                                    \
  extern "C" DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* host, const driftd_offer* offer, \
                                                            driftd_accept* out) {                                  \
    return driftd::sdk::detail::Table<&plugin>::entry(host, offer, out);                                           \
  }
