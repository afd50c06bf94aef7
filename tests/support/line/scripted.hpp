// SPDX-License-Identifier: Apache-2.0
// A provider whose system is a struct that the test changes. It is for tests and benchmarks of the engine in which the
// system must misbehave on command. Everything runs on the core thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ports/session.hpp"

namespace driftd::test {

/// What the provider sees and how it behaves. `resources` maps a resource to its body, a JSON object.
struct ScriptedWorld {
  std::map<core::ResourceId, std::string> resources;
  std::vector<std::string> kinds = {"thing"};
  std::string identity = "system-1";
  std::size_t max_delivered = SIZE_MAX;  ///< maximum number of records in a refresh; COMPLETE still counts all of them
  std::size_t page_records = SIZE_MAX;   ///< maximum number of records in a page of a refresh; the host's is 512
  bool sends_complete = true;
  std::optional<Error> refresh_fails;  ///< a refresh fails with this after it sent the records
  std::optional<Error> read_fails;
  std::function<void()> before_read;  ///< called at the beginning of each read()
  std::vector<core::Diagnostic> diagnostics;
  std::map<core::ResourceId, core::Unread> unread;  ///< what could not be read of these
  std::set<core::ResourceId> unreadable;            ///< read() reports these neither as found nor as not found
  bool watches = false;
  std::string external_name;                    ///< `external_name` of every record
  std::map<std::string, std::string> metadata;  ///< metadata of every record, for example `serial`
  std::optional<Error> health_fails;
  core::HealthReport::State health = core::HealthReport::State::up;
  bool refresh_hangs = false;                   ///< the refresh hangs until stop()
  bool diffs = false;                           ///< the provider offers `diff`
  std::set<core::ResourceId> diff_fails;        ///< demote() of these fails
  std::set<core::ResourceId> equivalent;        ///< demote() demotes the first change of these
  std::map<std::string, std::string> schemas;   ///< driftd-schema/1 document of a kind
  std::vector<std::string> extensions;          ///< ids of extensions, for example `driftd.upgrade`
  std::map<std::string, std::string> upgrades;  ///< stored body → the body in the current revision
  std::optional<Error> upgrade_fails;
  std::vector<std::string> upgraded;  ///< calls of upgrade(): `kind from_revision body`
  /// What this provider declares about other backends, as a source: (backend, resource) → body.
  std::map<std::pair<std::string, core::ResourceId>, std::string> declared;
  std::set<std::pair<std::string, std::string>> declared_kinds;  ///< (backend, kind) that each refresh lists
  /// Further registrations of a backend in the same source, by tenants. `name_space` becomes the metadata `defined_in`.
  struct Tenant {
    std::string backend, name_space, body;
  };
  std::vector<Tenant> tenants;
  std::vector<core::RecordPage> pages;  ///< pages that a refresh sends unchanged, after all others
  /// Diagnostics of a read that does not find a registration, instead of "not found".
  std::vector<core::Diagnostic> read_diagnostics;
  core::DiscoverOutcome discovered;
  /// What apply() does: changes the body as asked unless `apply` says otherwise. Every call is noted.
  std::vector<core::ApplyRequest> applied;
  std::function<std::optional<Result<core::ApplyOutcome>>(const core::ApplyRequest&)> apply;  ///< asked first
  std::string worker = "running";  ///< `state` of WorkerStatus
  bool cursors = false;            ///< a refresh with the current cursor answers "unchanged"
  bool always_unchanged = false;   ///< a refresh with any cursor answers so; needs `cursors`
  bool checkpoints = true;         ///< false: a refresh ends without a cursor
  std::size_t unchanged = 0;       ///< number of refreshes that answered "unchanged"
  std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>();  ///< gives `observed_ns` of the records
  std::size_t digests = 0;                           ///< records of the last list that came as digests
  std::map<core::ResourceId, std::string> versions;  ///< `version` of these records
  std::optional<Nanos> observed_ns;                  ///< `observed_ns` of every record, instead of the clock
  std::map<core::ResourceId, Nanos> observed_at;     ///< `observed_ns` of these records, whatever else is set
};

/// What apply() does by default.
Result<core::ApplyOutcome> put_back(ScriptedWorld& world, const core::ApplyRequest& request);

class ScriptedSession final : public core::Session {
 public:
  ScriptedSession(std::shared_ptr<ScriptedWorld> world, asio::any_io_executor core);
  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override;
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest request, core::PageHandler on_page) override;
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId> ids, std::chrono::milliseconds deadline) override;
  Task<Result<core::HealthReport>> health() override;
  /// Sends one page for each change() until stop().
  Task<Status> watch(std::string cursor, core::PageHandler on_page) override;
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId id, std::vector<core::Change> changes) override;
  Task<Result<core::DiscoverOutcome>> discover() override;
  Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) override;
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest request) override;
  core::WorkerStatus status() const override;
  Task<void> stop() override;

  /// Makes the watch send this resource as it is in the world.
  void change(core::ResourceId id);
  /// Makes the watch send a hint, which names no resource.
  void hint() { change({}); }
  /// Makes the watch send all of these in one page, as when it catches up. An empty body is a tombstone.
  using States = std::vector<std::pair<core::ResourceId, std::string>>;
  void replay(States states);

 private:
  core::RecordPage page_of(const std::string& kind, std::size_t& left) const;
  void leave_out_known(const core::RefreshRequest& request, core::RecordPage& page);
  core::RecordPage declared_page(const std::string& backend, const std::string& kind) const;
  core::Observation observed(const core::ResourceId& id, const std::string& body,
                             const std::string& external_name = {}) const;
  std::string cursor() const;

  std::shared_ptr<ScriptedWorld> world_;
  std::shared_ptr<const core::ProviderInfo> info_;
  asio::steady_timer wake_, hanging_;
  std::deque<core::ResourceId> changed_;
  std::deque<States> replayed_;
  bool stopped_ = false;
  std::map<core::ResourceId, Digest> sent_;  ///< by refreshes
};

class ScriptedFactory final : public core::SessionFactory {
 public:
  /// `sources` contains the worlds of some backends by name. Every other backend has `world`.
  using Worlds = std::map<std::string, std::shared_ptr<ScriptedWorld>>;
  ScriptedFactory(std::shared_ptr<ScriptedWorld> world, Worlds sources, asio::any_io_executor core)
      : world_(std::move(world)),
        sources_(std::move(sources)),
        core_(std::move(core)) {}
  Task<std::vector<ScanResult>> scan() override { co_return std::vector<ScanResult>{}; }
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override;
  void on_event(std::function<void(core::SessionEvent)>) override {}

  std::shared_ptr<ScriptedSession> last;  ///< the last session that was opened, except those of `sources`

 private:
  std::shared_ptr<ScriptedWorld> world_;
  Worlds sources_;
  asio::any_io_executor core_;
};

}  // namespace driftd::test
