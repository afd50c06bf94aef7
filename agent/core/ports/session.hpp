// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/extension.hpp"
#include "core/judge/diff.hpp"
#include "core/ports/worker.hpp"
#include "core/resource.hpp"

namespace driftd::core {

/// A page as it comes from the provider, in order: at most 512 records and 4 MiB, cut after each mark.
struct RecordPage {
  std::vector<Observation> records;
  std::vector<Mark> marks;  ///< behind the records
  std::vector<Diagnostic> diagnostics;
};
/// Takes a page; the provider gets no further credit before it returns. An error ends the call with that error.
using PageHandler = std::function<Task<Status>(RecordPage)>;

struct RefreshRequest {
  bool full = false;
  std::string cursor;
  std::vector<std::string> kinds;
  std::chrono::milliseconds deadline{0};
};
struct RefreshOutcome {
  bool unchanged = false;
  std::chrono::milliseconds next{0};
};
struct ReadOutcome {
  std::vector<Observation> found;
  std::vector<ResourceId> not_found;
  std::vector<Diagnostic> diagnostics;  ///< the rest: unknown
};

/// What a plugin says of itself (describe + schema).
struct ProviderInfo {
  std::string id, version, file;
  std::vector<std::string> types, kinds;
  bool has_watch = false;
  bool has_diff = false;  ///< describe says `"diff": true`: demote() is worth a round trip
  int concurrency = 1;
  std::vector<Extension> extensions;  ///< that it offers and this agent uses
  std::string settings_schema;
  std::string describe;                                              ///< all that describe said, JSON
  std::map<std::string, std::shared_ptr<const KindSchema>> schemas;  ///< per kind
  std::map<std::string, std::string> schema_texts;
  std::vector<FreeForm> free_form;  ///< describe().free_form

  bool offers(std::string_view extension) const {
    return std::any_of(extensions.begin(), extensions.end(), [&](const Extension& e) { return e.id == extension; });
  }
};

struct Demotion {
  std::size_t index = 0;   ///< of the change
  bool unsettled = false;  ///< false: equivalent
  std::string reason;
};

/// One backend's provider, in a supervised worker or in-process; the same behaviour either way. Core thread only; calls
/// may overlap. A worker that died answers `unavailable` with the reason and is restarted with jittered backoff; the
/// next call waits for it within its deadline.
class Session {
 public:
  virtual ~Session() = default;
  virtual Task<Result<std::shared_ptr<const ProviderInfo>>> info() = 0;
  virtual Task<Result<RefreshOutcome>> refresh(RefreshRequest request, PageHandler on_page) = 0;
  virtual Task<Result<ReadOutcome>> read(std::vector<ResourceId> ids, std::chrono::milliseconds deadline) = 0;
  virtual Task<Result<HealthReport>> health() = 0;
  /// Runs until `stop`, an error, or cursor_expired. A page with only a bookmark of empty cursor is a hint.
  virtual Task<Status> watch(std::string cursor, PageHandler on_page) = 0;
  /// The provider's own verdicts on changes: empty when it has none.
  virtual Task<Result<std::vector<Demotion>>> demote(ResourceId id, std::vector<Change> changes) = 0;
  /// The backends that the provider knows of (driftd.discover/1). `unsupported` without the extension, as the two
  /// below.
  virtual Task<Result<DiscoverOutcome>> discover() = 0;
  /// A stored body of an older schema revision in the current one's form (driftd.upgrade/1), canonical JSON.
  /// `unsupported` also for a revision that the provider does not know; `corrupt` when it answers no JSON object.
  virtual Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) = 0;
  /// Puts known values back (driftd.apply/1, experimental). `conflict`: it changed since it was judged; `not_found`: it
  /// is gone; `invalid`: a credential among the changes, or no key.
  virtual Task<Result<ApplyOutcome>> apply(ApplyRequest request) = 0;
  virtual WorkerStatus status() const = 0;
  /// Frees a parked worker at once. `conflict`: it is not parked.
  virtual Status resume() { return fail(Code::conflict, "nothing is parked"); }
  /// Called when another plugin serves from now on: it arrived, or its file was upgraded. info() tells which.
  virtual void on_change(std::function<void()>) {}
  /// Cancels all calls, ends the worker within the grace time. Idempotent.
  virtual Task<void> stop() = 0;
};

struct Budgets {
  std::int64_t rss_bytes = 512ll << 20;
  std::chrono::milliseconds call{60'000};                 ///< wall time of a refresh unless the request says less
  std::uint64_t records = 1'000'000, bytes = 1ull << 30;  ///< per refresh
  std::uint64_t resources = 1'000'000;  ///< known of a backend at a time, those that went not long ago included
  std::chrono::milliseconds cpu{0};     ///< processor time of one call but watch; 0: as much as `call` lets it
  int files = 1024, threads = 512;      ///< of the worker: descriptors, threads (the host's own few among them)
};

struct SessionSpec {
  std::string backend;
  std::string provider;                        ///< plugin id or backend type, as found by the library scan
  std::string settings_json;                   ///< validated against the settings schema; sensitive values are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes
  std::vector<RedactRule> redact;              ///< of the config, in order
  enum class Isolation { process, in_process } isolation = Isolation::process;
  Budgets budgets;
  bool wait_for_plugin = false;  ///< open() succeeds without one; the session starts when its file arrives
  RedactionKey worker_key;
  std::uint64_t digest_seed = 0;
};

/// Something that the agent should know of.
struct SessionEvent {
  std::string backend;  ///< or, of a file that no backend uses, empty
  std::string what;     ///< budget | crashed | parked | misbehaved | secret_denied | upgraded | upgrade_refused |
                        ///< plugin_refused
  std::string message;
};

/// Finds plugins and opens sessions.
class SessionFactory {
 public:
  virtual ~SessionFactory() = default;
  struct PluginUser {
    std::string backend;
    WorkerStatus worker;
  };
  /// A plugin file, described by a short-lived worker; a bad one carries its error.
  struct ScanResult {
    std::string file;
    Result<std::shared_ptr<const ProviderInfo>> info;
    std::string sha256, pin;  ///< hex; pin: pinned | unpinned | changed, empty: there is no driftd.lock
    bool gone = false;        ///< the file is not there any more; what runs it stays
    std::vector<PluginUser> used_by;
  };
  /// All plugins of the plugin folders.
  virtual Task<std::vector<ScanResult>> scan() = 0;
  virtual Result<std::shared_ptr<Session>> open(SessionSpec spec) = 0;
  virtual void on_event(std::function<void(SessionEvent)> handler) = 0;
  /// From now on sessions follow what lies in the plugin folders: files that arrive, are upgraded, or are pinned anew.
  virtual void watch(bool) {}  ///< false: no longer; a scan under way ends
};

}  // namespace driftd::core
