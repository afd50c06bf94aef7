// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/extension.hpp"
#include "core/ports/session_spec.hpp"
#include "core/ports/sink_plugin.hpp"
#include "core/ports/worker.hpp"
#include "core/resource.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

/// A page of records in the provider's order. It has at most 512 records and 4 MiB, and ends after each mark.
struct RecordPage {
  std::vector<Observation> records;
  std::vector<Mark> marks;  ///< they follow the records
  std::vector<Diagnostic> diagnostics;
};
/// Handles a page. The provider gets no further credit before it returns. An error ends the call with that error.
using PageHandler = std::function<Task<Status>(RecordPage)>;

struct RefreshRequest {
  bool full = false;
  std::string cursor;
  std::vector<std::string> kinds;
  std::chrono::milliseconds deadline{0};
  bool digests = false;  ///< a record that was sent before may come as its digest (Observation::digest_only) …
  std::vector<ResourceId> whole;  ///< … but not of these
};
struct RefreshOutcome {
  bool unchanged = false;
  std::chrono::milliseconds next{0};
};
struct ReadOutcome {
  std::vector<Observation> found;
  std::vector<ResourceId> not_found;
  std::vector<Diagnostic> diagnostics;  ///< for the other ids, which are unknown
};

/// What a plugin reports about itself (describe and schema).
struct ProviderInfo {
  std::string id, version, file;
  std::vector<std::string> types, kinds;
  bool has_watch = false;
  bool has_diff = false;  ///< describe has `"diff": true`, so demote() is worth a round trip
  int concurrency = 1;
  std::vector<Extension> extensions;  ///< those that the plugin offers and this agent uses
  std::string settings_schema;
  std::string describe;                                              ///< the whole answer of describe, JSON
  std::map<std::string, std::shared_ptr<const KindSchema>> schemas;  ///< per kind
  std::map<std::string, std::string> schema_texts;
  std::vector<FreeForm> free_form;     ///< describe().free_form
  std::optional<SinkPluginInfo> sink;  ///< set if it is a sink plugin, which has neither types nor kinds

  bool offers(std::string_view extension) const {
    return std::any_of(extensions.begin(), extensions.end(), [&](const Extension& e) { return e.id == extension; });
  }
};

/// A change that the provider's own diff does not count as one.
struct Demotion {
  std::size_t index = 0;   ///< index in the changes that demote() was asked about
  bool unsettled = false;  ///< false: equivalent
  std::string reason;
};

/// One backend's provider, in a supervised worker or in-process, with the same behaviour. Core thread only; calls may
/// overlap. If the worker dies, its calls return `unavailable` with the reason. The worker is restarted with jittered
/// backoff, and the next call waits for it within its deadline.
class Session {
 public:
  virtual ~Session() = default;
  virtual Task<Result<std::shared_ptr<const ProviderInfo>>> info() = 0;
  virtual Task<Result<RefreshOutcome>> refresh(RefreshRequest request, PageHandler on_page) = 0;
  virtual Task<Result<ReadOutcome>> read(std::vector<ResourceId> ids, std::chrono::milliseconds deadline) = 0;
  virtual Task<Result<HealthReport>> health() = 0;
  /// Runs until stop(), an error, or `cursor_expired`. A page with nothing but a bookmark whose cursor is empty is a
  /// hint that something changed.
  virtual Task<Status> watch(std::string cursor, PageHandler on_page) = 0;
  /// Returns the changes that the provider's own diff demotes. Empty if it has none.
  virtual Task<Result<std::vector<Demotion>>> demote(ResourceId id, std::vector<Change> changes) = 0;
  /// Returns the backends that the provider knows of (driftd.discover/1). This and the two below return `unsupported`
  /// if the provider does not offer the extension.
  virtual Task<Result<DiscoverOutcome>> discover() = 0;
  /// Converts a stored body of an older schema revision to the current one (driftd.upgrade/1); canonical JSON. Returns
  /// `unsupported` also if the provider does not know the revision, `corrupt` if its answer is not a JSON object.
  virtual Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) = 0;
  /// Puts known values back (driftd.apply/1), never twice. Returns `conflict` if the resource changed since it was
  /// judged, `not_found` if it is gone, `invalid` if ipc::check() refuses the request. After any other error nobody
  /// knows whether the system was changed (the worker may have died): read the resource before saying anything.
  virtual Task<Result<ApplyOutcome>> apply(ApplyRequest request) = 0;
  /// Of a sink plugin: delivers a batch and passes on each verdict. What is not settled when it returns has none.
  virtual Task<DeliverEnd> deliver(DeliverRequest, SettledHandler) {
    co_return DeliverEnd{DeliverEnd::How::not_begun, fail(Code::unsupported, "this session has no sink plugin")};
  }
  /// Of a sink plugin: makes durable what the worker of that number delivered before. Returns `unavailable` at once,
  /// and flushes nothing, if it does not serve any more.
  virtual Task<Status> flush(std::chrono::milliseconds, std::uint64_t) {
    co_return fail(Code::unsupported, "this session has no sink plugin");
  }
  virtual std::uint64_t worker() const { return 0; }       ///< number of the one that serves, unique here; 0: none does
  virtual void on_worker_change(std::function<void()>) {}  ///< sets what is called when it has become another or 0
  virtual WorkerStatus status() const = 0;
  /// Starts a parked worker at once. Returns `conflict` if it is not parked.
  virtual Status resume() { return fail(Code::conflict, "nothing is parked"); }
  /// Sets the handler that is called when another plugin file serves from now on: it arrived, or was upgraded. info()
  /// then describes the new one.
  virtual void on_change(std::function<void()>) {}
  /// Cancels all calls, ends the worker within the grace time. Idempotent.
  virtual Task<void> stop() = 0;
};

/// Something about a session or a plugin that the agent reports.
struct SessionEvent {
  std::string backend;  ///< empty if it is about a plugin file that no backend uses
  std::string what;     ///< budget | crashed | parked | misbehaved | secret_denied | upgraded | upgrade_refused |
                        ///< upgrade_reverted | plugin_refused | program_failed | secret_file_failed
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
  /// A plugin file, described by a short-lived worker. If the file is not valid, `info` is the error.
  struct ScanResult {
    std::string file;
    Result<std::shared_ptr<const ProviderInfo>> info;
    std::string sha256, pin;  ///< sha256: hex; pin: pinned | unpinned | changed, empty if there is no driftd.lock
    bool gone = false;        ///< the file was removed; workers that run it go on
    std::vector<PluginUser> used_by;
  };
  /// Describes all plugins of the plugin folders.
  virtual Task<std::vector<ScanResult>> scan() = 0;
  virtual Result<std::shared_ptr<Session>> open(SessionSpec spec) = 0;
  virtual void on_event(std::function<void(SessionEvent)> handler) = 0;
  /// Starts the parked worker of a session by the name of its spec. Returns `not_found` if there is no such session,
  /// `conflict` if its worker is not parked.
  virtual Status resume(const std::string& backend) {
    return fail(Code::not_found, "there is no worker of " + backend);
  }
  /// Starts (true) or stops (false) watching the plugin folders. While they are watched, sessions take up files that
  /// arrive, are upgraded, or are pinned again. A running scan ends.
  virtual void watch(bool) {}
};

}  // namespace driftd::core
