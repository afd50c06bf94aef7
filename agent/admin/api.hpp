// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "admin/answer_memory.hpp"
#include "admin/json.hpp"
#include "admin/metrics.hpp"
#include "base/async_mutex.hpp"
#include "base/task.hpp"
#include "core/denials.hpp"
#include "core/ports/control.hpp"
#include "core/ports/credentials.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/session.hpp"
#include "core/value/value.hpp"

namespace driftd::admin {

/// One request, without its transport. parse_target() fills `path` and `query`, the server the rest.
struct Request {
  /// `method` is as HTTP sends it, such as GET.
  std::string method, path;                  ///< `path` is decoded and has no query
  std::map<std::string, std::string> query;  ///< decoded
  std::string body;
  std::string actor;                     ///< user name of the caller
  core::Caller caller{};                 ///< uid, gid and pid by the kernel, and who the caller claims to be
  std::vector<std::uint32_t> gids{};     ///< groups of the caller, by the kernel
  bool may_decide = true;                ///< false: the caller may only read
  std::shared_ptr<MemoryShare> share{};  ///< limits the memory of the answer; null: no limit
};
/// One answer, without its transport.
struct Response {
  int status = 200;  ///< of HTTP
  std::string body;
  std::string type = "application/json";  ///< for Content-Type
  int retry_after = 0;                    ///< seconds, for Retry-After; 0: no such header
  bool secret = false;                    ///< the body is valid UTF-8 and must be wiped after it was sent
};

/// What the API needs of the agent. All of it must outlive the API.
struct ApiDependencies {
  core::Control& control;      ///< everything that changes the agent, and its view
  core::Reader& reader;        ///< the rows of lists, read beside the store's writer
  PrometheusMetrics& metrics;  ///< rendered by /metrics
  /// Returns all plugins of the plugin folders.
  std::function<Task<std::vector<core::SessionFactory::ScanResult>>()> plugins;
  /// Returns the drifts that wait for a decision, as a list of objects (docs/api.md, queue). Empty function: there is
  /// no such queue.
  std::function<Task<Result<core::Value>>()> notifications;
  /// Called after a large answer: its memory may be given back to the system. Empty function: it is kept.
  std::function<void()> release_memory = {};
  /// Where large answers are rendered, which would block the core thread. Empty: on the core thread.
  asio::any_io_executor render_executor = {};
  core::Credentials* credentials = nullptr;  ///< null: nobody gets a value
};

/// The HTTP/JSON API without its transport (docs/api.md). Core thread; requests may overlap.
class Api {
 public:
  Api(asio::any_io_executor core, ApiDependencies deps) : deps_(std::move(deps)), large_(std::move(core)) {}
  /// Answers any request. A failure is {"error":{"code","message"}} with a fitting status.
  Task<Response> handle(Request request);
  /// Answers the three paths of the loopback port, /metrics, /livez and /readyz; any other path with 404.
  Task<Response> probe(Request request);
  /// Writes an audit line about a refused caller. Their number is limited for each user, who might fill the log.
  Task<void> audit_denial(std::string actor, core::Caller caller, std::string asked, Error error);
  /// Writes a line for each user about refusals of past minutes that had none, with `all` also of this minute.
  Task<void> audit_unwritten_denials(bool all);
  /// Ends requests that wait for events soon, with the events that there are. The server calls it when it stops.
  void stop() { stopping_ = true; }
  /// To be called after an answer of `bytes` was sent.
  void sent(std::size_t bytes) const;

 private:
  using Answer = Result<core::Value>;
  using Text = Result<std::string>;  ///< JSON
  /// Answers a request that is not a list and not a probe. Returns `unsupported` for a method other than GET and POST.
  Task<Answer> route(Request request);
  Task<Answer> get(Request request);  ///< `not_found`: there is no such path
  /// Writes the audit line, then makes the change. Returns `denied` if the caller may only read, and the failure of the
  /// audit log, without a change, if the line cannot be written.
  Task<Answer> post(Request request);
  /// The lists. Each returns `invalid` for an unknown or malformed parameter; those of resources and drifts return
  /// `unavailable` if there is no memory left for their rows.
  Task<Text> resources(Request request);
  Task<Text> drifts(Request request);
  Task<Text> events(Request request);
  Task<Answer> queue();     ///< the notifications, and what the sinks have not delivered
  Task<Answer> silences();  ///< those that hold
  Task<Answer> change_silences(Request request, core::AuditEntry line);
  Task<Text> dead_letters(Request request);
  Task<Text> audit(Request request);           ///< the newest lines, or those behind `after`
  Task<Answer> verify_audit(Request request);  ///< a broken chain is an answer, not an error
  Task<Text> lists(Request request);           ///< any path of is_list()
  /// The rows of a list as JSON, and how to count all rows that match.
  struct ListContent {
    std::string name, rows;     ///< `rows` is a JSON array, `name` the member that holds it
    std::size_t count = 0;      ///< rows in `rows`
    std::int64_t limit = 0;     ///< rows that were asked for
    bool ended = false;         ///< the list ended before its limit although there are more rows
    core::Reader::Count all{};  ///< counts all rows that match, used only if some may be missing
    core::Value notes{};        ///< remarks on globs that matched nothing; null: none
  };
  /// Returns the rows with their total and whether that is more than the rows.
  Task<Text> list(ListContent listed);
  /// Waits for other large lists if this one has more than 1,000 rows: ten thousand rows are in memory until their JSON
  /// is ready.
  Task<AsyncMutex::Guard> large_list_turn(std::int64_t limit);
  /// Returns `not_found`, with the known names, if a filter without `*` matches nothing.
  Task<Status> check_names(core::DriftFilter filter);
  /// Returns `not_found`, with the known names, if there is no such sink. An empty name and a glob pass.
  Task<Status> check_sink(std::string name);
  /// Returns a drift with the digest that a decision must repeat and, if it is open, its reference `ID@DIGEST`.
  core::Value shown_drift(const core::Drift& drift, Depth depth = Depth::whole);
  core::Value shown_row(const core::DriftRow& row, Depth depth);  ///< with the name of the backend
  /// Makes the change of a POST whose path was accepted. It has its audit line already, except for a decision, whose
  /// line is committed with it.
  Task<Answer> do_change(Request request, core::AuditEntry line);
  /// `verb` is approve, reject, ignore, undo, claim or release.
  Task<Answer> decide(std::string drift_id, std::string verb, Request request);
  Task<Answer> refresh(Request request);  ///< one result for each backend
  /// Returns the steps that led to the verdict on one resource. Changes nothing, so it has no audit line.
  Task<Answer> explain(Request request);
  core::Value enforcement();  ///< whether it is on, and what is held
  Task<Answer> operations(Request request);
  /// `verb` is enforce or resume, of a drift; or on or off.
  Task<Answer> enforce(std::string verb, std::string drift_id, Request request);
  /// Returns why drifts whose policy is `enforce` are not put back, by drift.
  std::map<std::string, core::Value> holds();
  core::Value holds_of(const std::string& backend, const core::ResourceId& resource);
  Task<Answer> plugins();  ///< those found, and the backends without one
  /// Returns `not_found`, with the known plugins, if no plugin has this id, type, file or backend.
  Task<Answer> describe_plugin(Request request);
  /// Lets parked backends start again; each gets an audit line of its own.
  Task<Answer> resume(Request request);
  /// Answers with the values behind references. Its right is not that of changes: it has grants of its own.
  Task<Response> resolve_credentials(Request request);
  Task<Answer> replay(Request request);                         ///< returns the number of events
  Task<Answer> settle_dead(std::string verb, Request request);  ///< returns the number of letters

  ApiDependencies deps_;
  core::Denials denials_;
  AsyncMutex large_;       ///< held while a large list is read
  bool stopping_ = false;  ///< requests for events do not wait any more
};

/// Returns true if GET of this path answers with a list whose rows are rendered one by one.
bool is_list(const std::string& path);
/// Returns the HTTP status of an error code.
int http_status(Code code);
/// Returns {"error":{"code","message"}} with the status of http_status().
Response error_response(const Error& error);
/// Returns the error of an answer that exceeds the memory for all answers that wait to be read.
Error memory_limit_error(const MemoryShare& share);
/// Reserves the memory of the answer, or replaces it by an error if there is none left. `must`: the answer is given in
/// any case.
void fit_answer(Response& answer, MemoryShare& share, bool must);
/// Splits a request target into path and query, percent-decoded. Returns `invalid` if it is malformed.
Result<Request> parse_target(std::string_view target);

}  // namespace driftd::admin
