// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/executors.hpp"
#include "base/async_mutex.hpp"
#include "config/registry.hpp"
#include "config/rules_text.hpp"
#include "core/ports/registry.hpp"
#include "core/ports/session.hpp"
#include "core/ports/store.hpp"
#include "engine/engine.hpp"
#include "secrets/renewed_session.hpp"

namespace driftd::app {

/// The backends that the agent runs and why: those of the configuration, and those that callers of gRPC registered,
/// whose definitions the store keeps. Whatever changes them (a start, a reload, a call) becomes a list of changes for
/// the engine, which is the only one to register, change and unregister. Core thread.
class Registry final : public core::ManualBackends {
 public:
  struct Needs {
    engine::Engine& engine;
    core::SessionFactory& sessions;
    core::Store& store;
    std::shared_ptr<secrets::SecretUses> uses;
    Executors& executors;
    AsyncMutex& changing;    ///< held by whoever changes the registry: a reload that applies a plan holds it already
    config::ValueMark mark;  ///< of expected values, in audit lines about rules
  };
  /// `config` is the running configuration, which the agent replaces in place. All must outlive it.
  Registry(const config::Config& config, Needs needs);

  using Plugins = std::vector<core::SessionFactory::ScanResult>;  ///< a scan
  /// Scans. If a plugin hangs when it is described, this returns what the last scan found; the scan goes on, and the
  /// next call waits for it too. For one caller at a time, who holds `changing`.
  Task<Plugins> scan();
  /// Reads the manual backends and returns all that shall run, for Engine::start(). Call it once.
  Task<Result<std::vector<core::BackendSpec>>> start(const Plugins& plugins);

  /// What a reload would change of the registry. Nothing is changed yet.
  struct Plan {
    std::map<std::string, config::BackendEntry> entries;  ///< all that shall run afterwards
    std::vector<engine::Engine::Change> changes;
    std::vector<std::string> unchanged;  ///< names; only their place in the file may differ
    std::vector<std::string> lines;      ///< for each change: what it is: `backends.orders (added)`
    std::vector<std::string> later;      ///< the same of those that wait for a change under way; see mend()
  };
  /// Compares with `next` and checks the settings of what changes. Returns `invalid` with file, line and column.
  Task<Result<Plan>> plan(std::shared_ptr<const config::Config> next, const Plugins& plugins);
  /// `failed` says why not; these run on as they were, or have stopped until mend() has run, which may make the change.
  /// What a refresh in progress or the store holds up is made `later`, without the caller.
  struct Outcome {
    std::vector<std::string> done, failed, later;
  };
  static constexpr std::string_view kLater = "made as soon as a refresh in progress and the store let it";
  /// Makes the changes side by side. Returns within some seconds, whatever a provider does.
  Task<Outcome> apply(Plan plan);
  /// Starts what a failed change has stopped, and manual backends whose definition can be used again. Leaves those with
  /// a change under way alone. Called by maintenance.
  Task<void> mend();

  Task<Result<core::ManualAnswer>> register_backend(core::ManualCall call) override;
  Task<Result<core::ManualAnswer>> update_backend(core::ManualCall call) override;
  Task<Result<core::ManualAnswer>> delete_backend(core::ManualCall call) override;
  /// Adds files that no plugin may read from now on.
  void protect(const std::vector<std::filesystem::path>& files) { needs_.uses->protect(files); }
  void stop() { stopping_ = true; }
  bool idle() const { return busy_.empty(); }  ///< no change is under way
  bool scanning() const { return scanning_ != nullptr; }
  /// Returns the rules of each backend that was registered by gRPC, as text. Empty if its definition cannot be used
  /// now.
  std::map<std::string, std::string> manual_rules() const;
  /// Returns the references of a backend that runs, which `resolve` may give. Empty if there are none.
  std::vector<config::CredentialUse> references(const std::string& backend) const;

 private:
  Task<config::BackendEntry> read_stored(std::shared_ptr<const config::Config> config, core::BackendRow row);
  Task<Result<std::map<std::string, config::BackendEntry>>> manual(std::shared_ptr<const config::Config> config);
  Task<Result<core::ManualAnswer>> put(core::ManualCall call, bool update);
  /// A definition as it is stored, and as it runs: with plain references resolved.
  struct Checked {
    config::BackendEntry entry;
    core::BackendSpec plain;
  };
  Task<Result<Checked>> check(core::ManualCall call, core::ManualAnswer& answer);
  Task<Result<bool>> stored_only(std::string name, std::string wanted);
  struct Scanning;
  Task<void> scan_into(std::shared_ptr<Scanning> to);
  /// The changes of one apply(), which may outlive it.
  struct Applying;
  Task<void> change_one(std::shared_ptr<Applying> all, std::size_t at);
  void settle(Applying& all, std::size_t at, const Status& changed);
  /// Returns the error for the caller of a change that failed with `why`. It says whether the change is stored, which
  /// is read from the store. `definition`: the wanted one; empty for a deletion.
  Task<Error> failure(std::string name, std::string definition, std::string why);
  Task<void> retry_faulty();
  Status may_change() const;
  core::ManualAnswer refuse(core::ManualAnswer::Refusal refusal, std::string why) const;
  std::string place_of(const std::string& name) const;

  const config::Config& config_;
  Needs needs_;
  std::map<std::string, config::BackendEntry> entries_;  ///< as they run, references unresolved; without discovered
  std::chrono::steady_clock::time_point tried_{};        ///< last attempt of retry_faulty()
  std::set<std::string> busy_;                           ///< backends with a change under way
  Plugins plugins_;                                      ///< the last scan that has ended
  std::shared_ptr<Scanning> scanning_;                   ///< the one under way; null: none is
  bool behind_ = false;  ///< what runs may differ from the configuration and the store: maintenance compares them
  bool stopping_ = false;
};

}  // namespace driftd::app
