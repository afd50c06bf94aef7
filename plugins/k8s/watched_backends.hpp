// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "k8s/backend_objects.hpp"
#include "k8s/resource_versions.hpp"

namespace driftd::k8s {

/// The backends that objects of the cluster define, kept up to date by a watch. A change of one object is noted; the
/// registrations of all backends that use the object are emitted by the next update(). [one thread]
class WatchedBackends {
 public:
  using Clock = std::chrono::steady_clock;
  using Emit = std::function<void(const sdk::Record&)>;

  WatchedBackends(const Settings& settings, const std::vector<Resource>& resources, ListCache& list_cache,
                  BackendObjects objects)
      : settings_(settings),
        resources_(resources),
        list_cache_(list_cache),
        backend_objects_(std::move(objects)),
        wanted_(settings.scope.wants_kind(kRegistration)) {}

  /// Returns true if registrations are within the scope.
  bool wanted() const { return wanted_; }
  /// Returns true if registrations are wanted and the defining objects have not been read yet, or not all of them, so
  /// that changes are missed.
  bool is_blind() const { return wanted_ && (!defining_ || backend_objects_.is_partial()); }
  /// Returns true if changes were noted that update() has not emitted.
  bool has_changes() const { return !causes_.empty(); }

  /// Notes that an object was created, changed or deleted. Does nothing unless it can belong to a backend.
  void note(const Ref& ref, const nlohmann::json& object, bool gone);
  /// Reads what is missing, and emits the registrations of backends that use an object that changed, or their
  /// tombstones. Throws if the objects cannot be read or `emit` throws; the changes stay noted then.
  void update(sdk::Call& call, const Emit& emit);
  /// Forgets all objects and changes, and reads nothing before `until`: a right is missing.
  void pause(Clock::time_point until);

 private:
  /// Returns false if registrations are not in scope, or if a right is missing at present.
  bool is_tracking() const { return wanted_ && Clock::now() >= refused_until_; }
  void recheck_skipped(sdk::Call& call);
  void recheck_denied();  ///< a right may have been granted since
  /// Returns true if the definition may exist although it was not found.
  bool is_hidden(const Definition& definition);
  void read_objects(sdk::Call& call, std::vector<sdk::Diagnostic>& diagnostics);
  void emit_registrations(sdk::Call& call, const Emit& emit);
  void emit_changed(sdk::Call& call, const Ref& cause, const Definitions& now,
                    std::vector<sdk::Diagnostic>& diagnostics, const Emit& emit);
  void emit_gone(sdk::Call& call, const Ref& cause, const Definitions& now, const Emit& emit);

  const Settings& settings_;
  const std::vector<Resource>& resources_;
  ListCache& list_cache_;
  BackendObjects backend_objects_;
  const bool wanted_;
  std::optional<Objects> defining_;  ///< nullopt: must be read first
  Definitions known_;                ///< as of the last update()
  std::set<Ref> causes_;             ///< objects that changed since then
  bool space_freed_ = false;         ///< a skipped namespace may fit again
  Clock::time_point recheck_after_{};
  Clock::time_point refused_until_{};  ///< a right is missing: no request before this time
};

}  // namespace driftd::k8s
