// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "admin/answer_memory.hpp"
#include "admin/denials.hpp"
#include "admin/json.hpp"
#include "admin/metrics.hpp"
#include "base/async_mutex.hpp"
#include "base/task.hpp"
#include "core/ports/control.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/session.hpp"
#include "core/value/value.hpp"

namespace driftd::admin {

struct Request {
  std::string method, path;                  ///< `path` is decoded and has no query
  std::map<std::string, std::string> query;  ///< decoded
  std::string body;
  std::string actor;  ///< user name of the caller
  core::Caller caller{};
  bool may_decide = true;                ///< false: the caller may only read
  std::shared_ptr<MemoryShare> share{};  ///< limits the memory of the answer; null: no limit
};
struct Response {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  int retry_after = 0;  ///< seconds, for Retry-After; 0: no such header
};

/// What the API needs of the agent. All of it must outlive the API.
struct ApiDependencies {
  core::Control& control;
  core::Reader& reader;
  PrometheusMetrics& metrics;
  /// Returns all plugins of the plugin folders.
  std::function<Task<std::vector<core::SessionFactory::ScanResult>>()> plugins;
  /// Returns the drifts that wait for a decision, as a list of objects (docs/api.md, queue). Empty function: there is
  /// no such queue.
  std::function<Task<Result<core::Value>>()> notifications;
  /// Called after a large answer: its memory may be given back to the system. Empty function: it is kept.
  std::function<void()> release_memory = {};
  /// Where large answers are rendered, which would block the core thread. Empty: on the core thread.
  asio::any_io_executor render_executor = {};
};

/// The HTTP/JSON API without its transport (docs/api.md). Core thread; requests may overlap.
class Api {
 public:
  Api(asio::any_io_executor core, ApiDependencies deps) : deps_(std::move(deps)), large_(std::move(core)) {}
  /// Answers any request. A failure is {"error":{"code","message"}} with a fitting status.
  Task<Response> handle(Request request);
  /// Answers the three paths of the loopback port, /metrics, /livez and /readyz; any other path with 404.
  Task<Response> probe(Request request);
  /// Writes an audit line about a refused caller. The number of lines is limited for each user: somebody who may not
  /// use the API must not be able to fill the audit log.
  Task<void> audit_denial(std::string actor, core::Caller caller, std::string asked, Error error);
  /// Ends requests that wait for events soon, with the events that there are. The server calls it when it stops.
  void stop() { stopping_ = true; }
  /// To be called after an answer of `bytes` was sent.
  void sent(std::size_t bytes) const;

 private:
  using Answer = Result<core::Value>;
  using Text = Result<std::string>;  ///< JSON
  Task<Answer> route(Request request);
  Task<Answer> get(Request request);
  Task<Answer> post(Request request);
  Task<Text> resources(Request request);
  Task<Text> drifts(Request request);
  Task<Text> events(Request request);
  Task<Answer> queue();
  Task<Text> dead_letters(Request request);
  Task<Text> audit(Request request);
  Task<Answer> verify_audit();
  Task<Text> lists(Request request);
  /// The rows of a list as JSON, and how to count all rows that match.
  struct ListContent {
    std::string name, rows;
    std::size_t count = 0;
    std::int64_t limit = 0;
    bool ended = false;  ///< the list ended before its limit although there are more rows
    core::Reader::Count all{};
    core::Value notes{};
  };
  Task<Text> list(ListContent listed);
  /// Waits for other large lists if this one has more than 1,000 rows: ten thousand rows are in memory until their JSON
  /// is ready.
  Task<AsyncMutex::Guard> large_list_turn(std::int64_t limit);
  /// Returns `not_found`, with the known names, if a filter without `*` matches nothing.
  Task<Status> check_names(core::DriftFilter filter);
  Task<Status> check_sink(std::string name);
  core::Value shown_drift(const core::Drift& drift, Depth depth = Depth::whole);
  core::Value shown_row(const core::DriftRow& row, Depth depth);
  Task<Answer> do_change(Request request);
  Task<Answer> decide(std::string drift_id, std::string verb, Request request);
  Task<Answer> refresh(Request request);
  Task<Answer> explain(Request request);
  Task<Answer> plugins();
  Task<Answer> describe_plugin(Request request);
  Task<Answer> resume(Request request);
  Task<Answer> replay(Request request);
  Task<Answer> settle_dead(std::string verb, Request request);

  ApiDependencies deps_;
  Denials denials_;
  AsyncMutex large_;  ///< held while a large list is read
  bool stopping_ = false;
};

/// Returns true if GET of this path answers with a list whose rows are rendered one by one.
bool is_list(const std::string& path);
/// Returns the HTTP status of an error code.
int http_status(Code code);
Response error_response(const Error& error);
/// Returns the error of an answer that exceeds the memory for all answers that wait to be read.
Error memory_limit_error(const MemoryShare& share);
/// Reserves the memory of the answer, or replaces it by an error if there is none left. `must`: the answer is given in
/// any case.
void fit_answer(Response& answer, MemoryShare& share, bool must);
/// Splits a request target into path and query, percent-decoded. Returns `invalid` if it is malformed.
Result<Request> parse_target(std::string_view target);

}  // namespace driftd::admin
