// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/task.hpp"
#include "host/host.hpp"
#include "host/jail_paths.hpp"
#include "host/supervisor_spec.hpp"
#include "ipc/messages.hpp"

namespace driftd::host {

/// Knows what the jail of a backend's worker opens and when that is out of date: if the plugin's schema names other
/// paths, or if a path of the settings leads elsewhere than when the worker started. The next worker then gets another
/// jail. Owned by a Supervisor, which must outlive the coroutines. Core thread.
class JailKeeper {
 public:
  /// `spec` and `options` must outlive this object.
  JailKeeper(const HostOptions& options, const SupervisorSpec& spec);

  void note_start();  ///< the next worker begins
  void note_end();    ///< the worker has ended; lookups for it no longer count
  /// Finds the paths for the worker that is being started. Returns `unavailable` if the file system does not answer or
  /// the worker has ended meanwhile.
  Task<Status> find_paths();
  /// Compares the schema that the plugin gave with the one for which the jail was made, because only the schema says
  /// which settings are paths. If they open other paths, renewal_pending() is true from then on: the worker must be
  /// replaced. Returns `denied` if a setting opens nothing, `invalid` if the schema differs at each load.
  Task<Status> verify(ipc::LoadAnswer loaded);
  /// Returns the first path that leads elsewhere since the worker started, for people; empty if there is none, if it is
  /// not known, or if the worker was replaced meanwhile.
  Task<std::string> find_replaced_path();
  /// Returns a value if the worker must be replaced because a path was replaced, a link leads elsewhere, or an expected
  /// socket now exists: the first such path, for people; empty if a path is gone.
  Task<std::optional<std::string>> look();
  bool is_look_due() const;  ///< true two seconds after the last look(), unless it is running or nothing can change
  /// The worker is ended because a path was replaced; the next one gets another jail.
  void renew();

  bool renewal_pending() const { return renewal_ == Renewal::pending; }  ///< the next worker gets another jail
  /// Returns true from renew() until the next worker is open.
  bool paths_replaced() const { return paths_replaced_; }
  /// Notes that the worker is open. Returns true if it replaced another one because of a path.
  bool note_open();

  const JailPaths& paths() const { return paths_; }              ///< of the current worker
  const std::string& description() const { return described_; }  ///< what the worker gave up, as it says; for people

 private:
  enum class Renewal {
    none,
    pending,  ///< the next worker is started to get another jail
    running,  ///< the current worker was started for that
  };
  /// Returns nullopt if the file system does not answer, or if the worker was replaced meanwhile.
  Task<std::optional<JailPaths>> look_up();

  const HostOptions& options_;
  const SupervisorSpec& spec_;
  std::string schema_;  ///< settings schema as last seen; it names the paths that the jail opens; empty: unknown
  JailPaths paths_;
  std::string described_;
  Renewal renewal_ = Renewal::none;
  bool paths_replaced_ = false;
  bool looking_ = false;  ///< look() is running
  std::chrono::steady_clock::time_point looked_{};
  std::uint64_t worker_number_ = 0;  ///< changes whenever a worker starts or ends
};

}  // namespace driftd::host
