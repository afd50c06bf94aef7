// SPDX-License-Identifier: Apache-2.0
// From the ABI's extension tables to Instance and Plugin. Providers do not call anything here.
#pragma once

#include "driftd/sdk/barrier.hpp"
#include "driftd/sdk/instance.hpp"

namespace driftd::sdk::detail {

/// The object behind a handle that Table::open gave to the host; the host never passes another one.
inline Instance& self(driftd_instance instance) { return *static_cast<Instance*>(instance); }

/// Copies an array of the host. `stride` is the host's size of one element, which may not be ours.
inline std::vector<Change> changes_of(const driftd_change* changes, std::uint32_t count, std::uint32_t stride) {
  std::vector<Change> out;
  const auto* at = reinterpret_cast<const char*>(changes);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) {
    const auto c = adopt(reinterpret_cast<const driftd_change*>(at));
    out.push_back({c.index, std::string(view(c.path)), std::string(view(c.old_value)), std::string(view(c.new_value))});
  }
  return out;
}

/// Borrows what an outcome reports, for as long as the outcome lives: the commands first.
inline std::vector<driftd_kv> details_of(const Applied& done) {
  std::vector<driftd_kv> out;
  const auto add = [&out](std::string_view key, const std::vector<std::string>& values) {
    for (const auto& value : values) out.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
  };
  add(DRIFTD_APPLY_COMMAND, done.commands);
  add(DRIFTD_APPLY_UNDO, done.undo);
  add(DRIFTD_APPLY_LEFT, done.left);
  const auto others = Discoverer::pairs(done.details);
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

/// The functions of the extension tables for one plugin function `P`: each converts its arguments, calls the Instance
/// and turns what it throws into a status (barrier.hpp). What they answer, and on which thread, is in driftd/ext/*.h.
template <const Plugin& (*P)()>
struct ExtensionTables {
  /// driftd_watch_table.watch: blocks on a thread of the host until the call is cancelled.
  static driftd_status watch(driftd_instance instance, driftd_call handle, const driftd_watch_args* args) {
    return guarded(handle, [&](Call& call) { self(instance).watch(call, std::string(view(adopt(args).cursor))); });
  }
  /// driftd_discover_table.discover. `result` is only written if the Instance returns.
  static driftd_status discover(driftd_instance instance, driftd_call handle, const driftd_discover_args* given,
                                driftd_discovered_fn push, void* user, driftd_discover_result* result) {
    return guarded(handle, [&](Call& call) {
      const auto args = adopt(given);
      const Discovery out = self(instance).discover(call, Discoverer(call, args, push, user));
      result->complete = out.complete ? 1 : 0;
      result->next_ms = out.next_ms;
    });
  }
  /// driftd_upgrade_table.upgrade: pure, so it needs no instance and no call.
  static driftd_status upgrade(const driftd_upgrade_args* given, driftd_push_fn push, void* user) {
    return guarded([&] {
      const auto args = adopt(given);
      const std::string out = P().upgrade(view(args.kind), args.from_revision, view(args.body));
      return push(user, str(out)), DRIFTD_OK;
    });
  }
  /// driftd_apply_table.apply: pushes exactly one outcome, or none and a status.
  static driftd_status apply(driftd_instance instance, driftd_call handle, const driftd_apply_args* given,
                             driftd_applied_fn push, void* user) {
    return guarded(handle, [&](Call& call) {
      const auto args = adopt(given);
      const Apply request{(args.flags & DRIFTD_APPLY_DRY_RUN) != 0,
                          {std::string(view(args.kind)), std::string(view(args.id)), std::string(view(args.backend))},
                          std::string(view(args.expected_version)),
                          std::string(view(args.idempotency_key)),
                          changes_of(args.changes, args.change_count, args.change_stride)};
      const Applied done = self(instance).apply(call, request);
      const auto details = details_of(done);
      const driftd_applied out{sizeof out,
                               done.outcome,
                               done.changed ? 1u : 0u,
                               0,
                               done.requeue_after_ms,
                               str(done.version),
                               str(done.text),
                               details.data(),
                               static_cast<std::uint32_t>(details.size()),
                               sizeof(driftd_kv)};
      push(user, &out);
    });
  }

  /// driftd_provider_table.query: the table of an extension that the Plugin has, at the one revision that this header
  /// knows; null for any other. The tables are static, as the ABI demands.
  static const void* query(driftd_str id, std::uint32_t revision) {
    static constexpr driftd_watch_table kWatch{sizeof(driftd_watch_table), 0, &watch};
    static constexpr driftd_discover_table kDiscover{sizeof(driftd_discover_table), 0, &discover};
    static constexpr driftd_upgrade_table kUpgrade{sizeof(driftd_upgrade_table), 0, &upgrade};
    static constexpr driftd_apply_table kApply{sizeof(driftd_apply_table), 0, &apply};
    const void* out = nullptr;  // also if P() throws: an extension that is not offered
    guarded([&] {
      const Plugin& plugin = P();
      const auto offer = [&](const char* name, std::uint32_t at, bool has, const void* table) {
        if (has && view(id) == name && revision == at) out = table;
      };
      offer(DRIFTD_EXT_WATCH, DRIFTD_EXT_WATCH_REVISION, plugin.has_watch, &kWatch);
      offer(DRIFTD_EXT_DISCOVER, DRIFTD_EXT_DISCOVER_REVISION, plugin.has_discover, &kDiscover);
      offer(DRIFTD_EXT_UPGRADE, DRIFTD_EXT_UPGRADE_REVISION, plugin.upgrade != nullptr, &kUpgrade);
      offer(DRIFTD_EXT_APPLY, DRIFTD_EXT_APPLY_REVISION, plugin.has_apply, &kApply);
      return DRIFTD_OK;
    });
    return out;
  }
};

}  // namespace driftd::sdk::detail
