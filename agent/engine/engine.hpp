// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async_mutex.hpp"
#include "core/backend.hpp"
#include "core/ports/session.hpp"
#include "engine/runner.hpp"
#include "engine/sources/pending_reports.hpp"
#include "engine/sources/reported_bytes.hpp"

namespace driftd::engine {

/// The canonical backend type of a provider name or alias: `postgresql` is `postgres`.
std::string canonical_type(const std::string& provider);

/// All backends at work. Registers them at start (CREATED, UPDATED, DELETED events), runs one Runner each. Core thread.
class Engine final : private SourceHub {
 public:
  Engine(std::shared_ptr<Context> context, core::SessionFactory& factory, core::RedactionKey worker_key,
         std::uint64_t digest_seed);

  /// Brings the registry in line with `specs`, in one commit a backend; `loops`: and starts the runners (else cycles
  /// run only on demand). Once.
  Task<Status> start(std::vector<core::BackendSpec> specs, bool loops);
  Task<void> stop();
  /// New policies, ignores and expectations for the backends named; others stay.
  Task<void> reload(std::vector<core::BackendSpec> specs);

  Task<Result<core::Drift>> decide(std::string drift_id, core::Decision decision);
  std::string binding(const core::Drift& drift) const;
  struct BackendRefresh {
    std::string backend;
    CycleReport report;
  };
  /// A cycle of one backend, or (empty) of all, side by side; `not_found` names the known ones.
  Task<Result<std::vector<BackendRefresh>>> refresh(std::string backend, bool full);
  /// Full cycles of the backends of which a source declared something in the cycles before, until there is none: what
  /// the loops do by themselves.
  Task<Result<std::vector<BackendRefresh>>> settle();
  Task<Result<std::vector<core::Step>>> explain(std::string backend, core::ResourceId id, std::string path);
  /// What the backend's provider discovers now; `unsupported` when it has no driftd.discover/1.
  Task<Result<core::DiscoverOutcome>> discover(std::string backend);
  std::vector<core::BackendView> view();
  /// Every backend had a cycle; else why not.
  bool ready(std::string& why);
  /// Frees parked workers (core::Control::resume).
  Result<std::vector<std::string>> resume(const std::string& name);
  void pressure(int stretch, bool hold);
  Runner* find(const std::string& name);

 private:
  /// Discovered backends (engine_sources.cpp).
  struct Discovery {
    std::string source_uid;
    int misses = 0;  ///< COMPLETE discoveries without it, in a row, at least an interval apart
    std::chrono::steady_clock::time_point missed_at{};
  };
  static const std::string* discovered_by(const core::BackendRow& row);  ///< uid of the source; nullptr: the config
  Task<core::Coverage> apply_discovery(std::string source, core::DiscoverOutcome outcome) override;
  /// What one discovery needs to register backends: read and counted once, for there may be thousands.
  struct Newcomers {
    std::string uid;                                    ///< of the source
    std::size_t known = 0;                              ///< registered for it
    std::map<std::string, std::size_t> known_in;        ///< and in each namespace
    std::optional<std::vector<core::BackendRow>> rows;  ///< rows_by_age(), from the first newcomer on
  };
  void count(Newcomers& newcomers) const;
  Task<Status> register_discovered(std::string source, core::Discovered found, Newcomers& newcomers);
  /// Which backends went away, and which are held because too many went at once.
  Task<Status> count_misses(std::string source, std::string uid, std::set<std::string> named);
  Task<Result<std::set<std::string>>> names_in_question(std::string source);
  /// Why another backend of this source, defined in that namespace, is not registered; empty: there is room.
  static std::string no_room(const Newcomers& newcomers, const std::string& place);
  /// Adds who is there and cannot be read: a backend, or all that are defined in a namespace.
  void add_unreadable(const std::string& uid, const std::vector<core::Diagnostic>& diagnostics,
                      std::set<std::string>& named) const;
  /// The backend is registered already, and this source is not believed about it.
  bool belongs_to_other_source(const std::string& source, const core::Discovered& found) const;
  /// Notes of backends of a store that did not, where they are found, if they are in one place only.
  void note_places(const std::string& source, const std::vector<core::Discovered>& found);
  Task<Status> remove_discovered(std::string name);

  /// What sources say of other backends (engine_words.cpp).
  void declared(const std::string& backend) override;
  bool registered(const std::string& backend) const override { return runners_.contains(backend); }
  std::string declaration_error(const std::string& backend, const std::string& kind) const override;
  ReportOutcome receive_report(RegistrationReport report) override;
  std::vector<std::string> reported_by(const std::string& source) const override;
  Task<Result<core::ReadOutcome>> ask_registrar(std::string backend) override;
  void release_registrar(const std::string& backend) override;
  void listed(const std::string& source) override;
  void claims_decided(const std::string& backend) override;
  std::string staleness_reason(const std::string& backend) const override;
  std::string assign_registrar(const RegistrationReport& report);
  std::string raise_claim(Runner& target, const core::Registrar& who);
  bool may_retract(const RegistrationReport& report);
  bool is_trusted(const std::string& backend, const core::Registrar& who) const;
  Task<Status> restore_registrars();
  Task<Status> drop_registrar(Runner& runner, std::string why);
  Runner* discoverer_of(const core::BackendRow& row);
  void set_discoverer(core::BackendRow& row, const core::BackendSpec& spec);
  Task<Status> restore_discovered(core::BackendRow row);
  /// Labels, patterns and endpoint of a backend that only its row remembers.
  static void restore_from_registration(const std::string& registration, core::BackendSpec& spec);

  /// All rows of the store: there first, then the one that left last.
  Task<Result<std::vector<core::BackendRow>>> rows_by_age();
  Task<Status> register_backend(core::BackendSpec spec, std::vector<core::BackendRow>& rows);
  Task<Status> unregister_backend(core::BackendRow row);
  /// Ends all open drifts of these resources.
  Task<Status> retire(Ledger& ledger, std::vector<core::ResourceId> open, std::string reason);
  Task<Result<std::vector<core::ResourceId>>> resources_with_open_drifts(std::string uid);
  core::SessionSpec session_spec(const core::BackendSpec& spec) const;
  Error unknown_backend(const std::string& name) const;

  std::shared_ptr<Context> context_;
  core::SessionFactory& factory_;
  core::RedactionKey worker_key_;
  std::uint64_t digest_seed_;
  std::map<std::string, std::shared_ptr<Runner>> runners_;
  std::map<std::string, Discovery> discovered_;
  std::map<std::string, core::Registrar> registrars_;  ///< backend → the one whose words on its registration count
  /// source → backend → who of its claims() spoke of it since the source listed all that it says
  std::map<std::string, std::map<std::string, std::set<core::Registrar>>> current_claims_;
  PendingReports pending_reports_;                                 ///< of backends that are not registered yet
  ReportedBytes reported_bytes_;                                   ///< of those that are
  std::map<std::string, std::set<std::string>> rejected_sources_;  ///< backend → sources whose report did not count
  AsyncMutex registry_mutex_;
  bool loops_ = false, stopping_ = false;
};

}  // namespace driftd::engine
