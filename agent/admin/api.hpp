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
#include "core/value/value.hpp"

namespace driftd::admin {

struct Request {
  std::string method, path;                  ///< path: decoded, without the query
  std::map<std::string, std::string> query;  ///< decoded
  std::string body;
  std::string actor;  ///< user name of the peer
  core::Caller caller{};
  bool may_decide = true;                ///< else it may only look
  std::shared_ptr<MemoryShare> share{};  ///< what its answer takes of the room; empty: as much as it likes
};
struct Response {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  int retry_after = 0;  ///< seconds; 0: nothing is said of it
};

/// What the API is a skin over; all outlive it.
struct ApiDependencies {
  core::Control& control;
  core::Reader& reader;
  PrometheusMetrics& metrics;
  /// All plugins of the plugin folders.
  std::function<Task<std::vector<core::SessionFactory::ScanResult>>()> plugins;
  /// What waits for a decision, as a list of objects (docs/api.md, queue); empty function: there is no such queue.
  std::function<Task<Result<core::Value>>()> notifications;
  /// What a large answer needed may go back to the system; empty function: it stays.
  std::function<void()> release_memory = {};
  /// Where answers are rendered that would hold up the core thread; empty: there is no such place.
  asio::any_io_executor render_executor = {};
};

/// The HTTP/JSON API without its transport (docs/api.md). Core thread; requests may overlap.
class Api {
 public:
  Api(asio::any_io_executor core, ApiDependencies deps) : deps_(std::move(deps)), large_(std::move(core)) {}
  /// Answers any request: failures are {"error":{"code","message"}} with a fitting status.
  Task<Response> handle(Request request);
  /// The three paths of the loopback port: /metrics, /livez, /readyz; others 404.
  Task<Response> probe(Request request);
  /// Leaves a line about somebody who was refused. Bounded for each user: whoever may not use the API must not fill the
  /// audit log.
  Task<void> audit_denial(std::string actor, core::Caller caller, std::string asked, Error error);
  /// Requests that wait for events end soon, with what there is. For the server's stop.
  void stop() { stopping_ = true; }
  /// An answer of so many bytes was sent.
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
  /// Rows as JSON, and how to count all that there are.
  struct ListContent {
    std::string name, rows;
    std::size_t count = 0;
    std::int64_t limit = 0;
    bool ended = false;  ///< before its limit, though there are more
    core::Reader::Count all{};
    core::Value notes{};
  };
  Task<Text> list(ListContent listed);
  /// Before a list of more than 1,000 rows is read: ten thousand of them stand in memory until their JSON is there.
  Task<AsyncMutex::Guard> large_list_turn(std::int64_t limit);
  /// `not_found` lists what is known when a filter without `*` names nothing.
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
  AsyncMutex large_;  ///< one large list at a time
  bool stopping_ = false;
};

/// Whether GET answers with a list whose rows are rendered one by one.
bool is_list(const std::string& path);
/// HTTP status of a code.
int http_status(Code code);
Response error_response(const Error& error);
/// The answer has no room render_executor those that wait to be read.
Error memory_limit_error(const MemoryShare& share);
/// The answer has its share of the room from here on, or gives way to one that says why not. `must`: it is given in any
/// case.
void fit_answer(Response& answer, MemoryShare& share, bool must);
/// Splits a request target into path and query, percent-decoded; `invalid` when it is malformed.
Result<Request> parse_target(std::string_view target);

}  // namespace driftd::admin
