// SPDX-License-Identifier: Apache-2.0
#include "admin/api.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "admin/fields.hpp"
#include "admin/json.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kMostRows = 10'000;
constexpr milliseconds kFollowStep{100};

std::string query(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

Status only(const Request& request, const std::vector<std::string>& allowed) {
  for (const auto& [name, value] : request.query) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      return fail(Code::invalid, "unknown query parameter '" + name + "'");
    }
  }
  return {};
}

Result<core::DriftFilter> drift_filter(const Request& request) {
  core::DriftFilter filter;
  DRIFTD_CHECK(only(request, {"backend", "kind", "id", "status", "all", "limit"}));
  filter.backend = query(request, "backend");
  filter.kind = query(request, "kind");
  filter.id = query(request, "id");
  filter.all = query(request, "all") == "true";
  if (const auto status = query(request, "status"); !status.empty()) {
    auto parsed = core::parse_drift_status(status);
    if (!parsed) return fail(Code::invalid, parsed.error().message);
    filter.status = *parsed;
  }
  DRIFTD_TRY(const std::int64_t limit, parse_number("limit", query(request, "limit"), 1000, 1, kMostRows));
  filter.limit = static_cast<int>(limit);
  return filter;
}

Result<core::Decision> decision_of(const std::string& verb, const Request& request, Nanos now) {
  using Verb = core::Decision::Verb;
  DRIFTD_TRY(Fields fields, Fields::parse(request.body));
  core::Decision out;
  out.verb = verb == "approve" ? Verb::approve : verb == "reject" ? Verb::reject : verb == "ignore" ? Verb::ignore
                                                                                                   : Verb::undo;
  out.actor = request.actor;
  out.reason = fields.text("reason");
  if (auto digest = fields.text("digest"); !digest.empty()) out.digest = std::move(digest);
  const std::int64_t lasts = fields.number("expires_seconds", 0);
  DRIFTD_CHECK(fields.check());
  if (lasts < 0 || lasts > 3650ll * 86'400) return fail(Code::invalid, "'expires_seconds' must be from 1 to 315360000");
  if (lasts > 0) out.expires_ns = now + lasts * 1'000'000'000;
  out.at_ns = now;
  return out;
}

Result<core::Control::Replay> replay_of(const Request& request) {
  DRIFTD_TRY(Fields fields, Fields::parse(request.body));
  core::Control::Replay out;
  out.sink = fields.text("sink");
  out.from_seq = fields.number("from_seq", 0);
  out.from_id = fields.text("from_id");
  const std::string from_time = fields.text("from_time");
  out.key = fields.text("key");
  out.rate = static_cast<int>(std::clamp<std::int64_t>(fields.number("rate", 0), 0, 1'000'000));
  DRIFTD_CHECK(fields.check());
  if (out.sink.empty()) return fail(Code::invalid, "'sink' is missing: name the sink that gets the events again");
  if (!from_time.empty()) {
    DRIFTD_TRY(out.from_ns, parse_time(from_time));
  }
  if (out.from_seq <= 0 && out.from_id.empty() && out.from_ns == 0) {
    return fail(Code::invalid, "one of 'from_seq', 'from_id' and 'from_time' must say where to start");
  }
  return out;
}

Value count_of(std::int64_t count) { return Value::Object{{"count", number(count)}}; }

Error no_such_path(const Request& request) {
  return {Code::not_found, "there is no " + request.method + " " + request.path + "; see docs/api.md"};
}

std::vector<std::string> segments(const std::string& path) {
  std::vector<std::string> out;
  std::size_t from = 1;
  while (from <= path.size()) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    out.push_back(path.substr(from, slash - from));
    from = slash + 1;
  }
  return out;
}

bool decides(const std::string& verb) {
  return verb == "approve" || verb == "reject" || verb == "ignore" || verb == "undo";
}

}  // namespace

int http_status(Code code) {
  switch (code) {
    case Code::ok: return 200;
    case Code::invalid: return 400;
    case Code::unauthenticated: return 401;
    case Code::denied: return 403;
    case Code::not_found: return 404;
    case Code::conflict: return 409;
    case Code::cursor_expired: return 410;
    case Code::throttled:
    case Code::budget: return 429;
    case Code::unsupported: return 501;
    case Code::unavailable:
    case Code::cancelled: return 503;
    case Code::deadline: return 504;
    case Code::corrupt:
    case Code::internal: break;
  }
  return 500;
}

Response error_response(const Error& error) {
  const Value body = Value::Object{
      {"error", Value::Object{{"code", std::string(render(error.code))}, {"message", error.message}}}};
  return {http_status(error.code), core::render(body) + "\n"};
}

Task<Response> Api::handle(Request request) {
  if (request.path == "/metrics" || request.path == "/livez" || request.path == "/readyz") {
    Response out = co_await probe(std::move(request));
    co_return out;
  }
  auto answer = co_await route(std::move(request));
  if (!answer) co_return error_response(answer.error());
  co_return Response{200, core::render(*answer) + "\n"};
}

Task<Response> Api::probe(Request request) {
  if (request.method != "GET" && request.method != "HEAD") {
    co_return error_response({Code::unsupported, "only GET is answered at " + request.path});
  }
  if (request.path == "/livez") co_return Response{200, "ok\n", "text/plain; charset=utf-8"};
  if (request.path != "/metrics" && request.path != "/readyz") co_return error_response(no_such_path(request));
  const core::AgentView view = backstage_.control.view();
  if (request.path == "/readyz") {
    co_return Response{view.ready ? 200 : 503, view.ready ? "ok\n" : view.not_ready_reason + "\n",
                       "text/plain; charset=utf-8"};
  }
  const auto books = co_await backstage_.reader.books();
  if (!books) co_return error_response(books.error());
  co_return Response{200, backstage_.metrics.render(view, *books), "text/plain; version=0.0.4; charset=utf-8"};
}

Task<Answer> Api::route(Request request) {
  if (request.method == "GET") {
    auto answer = co_await get(std::move(request));
    co_return answer;
  }
  if (request.method == "POST") {
    auto answer = co_await post(std::move(request));
    co_return answer;
  }
  co_return fail(Code::unsupported, "method " + request.method + " is not used here; see docs/api.md");
}

Task<Answer> Api::get(Request request) {
  const std::string path = request.path;
  if (path == "/v1/status") co_return to_json(backstage_.control.view());
  if (path == "/v1/backends") co_return Value::Object{{"backends", list_of(backstage_.control.view().backends)}};
  if (path == "/v1/resources") co_return co_await resources(std::move(request));
  if (path == "/v1/drifts") co_return co_await drifts(std::move(request));
  if (path == "/v1/events") co_return co_await events(std::move(request));
  if (path == "/v1/queue") co_return co_await queue();
  if (path == "/v1/deadletters") co_return co_await dead_letters(std::move(request));
  if (path == "/v1/audit") co_return co_await audit(std::move(request));
  if (path == "/v1/schema") {
    auto text = co_await backstage_.control.schema(query(request, "provider"), query(request, "what"));
    if (!text) co_return fail(text.error());
    co_return core::parse(*text);
  }
  if (path == "/v1/plugins") co_return co_await plugins();
  if (path == "/v1/plugins/describe") co_return co_await describe_plugin(std::move(request));
  const auto parts = segments(path);
  if (parts.size() == 4 && parts[0] == "v1" && parts[1] == "backends" && parts[3] == "discovered") {
    const auto outcome = co_await backstage_.control.discover(parts[2]);
    if (!outcome) co_return fail(outcome.error());
    co_return to_json(*outcome);
  }
  co_return fail(no_such_path(request));
}

Task<Answer> Api::post(Request request) {
  const auto parts = segments(request.path);
  const std::string path = request.path;
  if (parts.size() == 4 && parts[0] == "v1" && parts[1] == "drifts" && decides(parts[3])) {
    co_return co_await decide(parts[2], parts[3], std::move(request));
  }
  if (path == "/v1/refresh") co_return co_await refresh(std::move(request));
  if (path == "/v1/plugins/resume") co_return co_await resume(std::move(request));
  if (path == "/v1/explain") co_return co_await explain(std::move(request));
  if (path == "/v1/replay") co_return co_await replay(std::move(request));
  if (path == "/v1/deadletters/replay") co_return co_await settle_dead("replay", std::move(request));
  if (path == "/v1/deadletters/drop") co_return co_await settle_dead("drop", std::move(request));
  if (path == "/v1/reload") {
    const auto status = co_await backstage_.control.reload();
    if (!status) co_return fail(status.error());
    co_return Value::Object{{"reloaded", Value(true)}};
  }
  co_return fail(no_such_path(request));
}

Task<Answer> Api::resources(Request request) {
  DRIFTD_CO_CHECK(only(request, {"backend", "kind", "limit"}));
  DRIFTD_CO_TRY(const std::int64_t limit, parse_number("limit", query(request, "limit"), 1000, 1, kMostRows));
  const auto rows = co_await backstage_.reader.resources(query(request, "backend"), query(request, "kind"),
                                                         static_cast<int>(limit));
  if (!rows) co_return fail(rows.error());
  co_return Value::Object{{"resources", list_of(*rows)}};
}

Task<Answer> Api::drifts(Request request) {
  DRIFTD_CO_TRY(core::DriftFilter filter, drift_filter(request));
  const auto rows = co_await backstage_.reader.drifts(std::move(filter));
  if (!rows) co_return fail(rows.error());
  co_return Value::Object{{"drifts", list_of(*rows)}};
}

Task<Answer> Api::events(Request request) {
  DRIFTD_CO_CHECK(only(request, {"after", "limit", "wait"}));
  DRIFTD_CO_TRY(const std::int64_t limit, parse_number("limit", query(request, "limit"), 100, 1, 1000));
  DRIFTD_CO_TRY(const std::int64_t after, parse_number("after", query(request, "after"), -1, 0, INT64_MAX));
  DRIFTD_CO_TRY(const std::int64_t wait, parse_number("wait", query(request, "wait"), 0, 0, 30));
  const int most = static_cast<int>(limit);
  if (after < 0) {
    const auto last = co_await backstage_.reader.last_events(most);
    if (!last) co_return fail(last.error());
    co_return Value::Object{{"events", list_of(*last)}};
  }
  const auto until = std::chrono::steady_clock::now() + seconds(wait);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (;;) {
    const auto found = co_await backstage_.reader.events(after, most);
    if (!found) co_return fail(found.error());
    if (!found->empty() || stopping_ || std::chrono::steady_clock::now() >= until) {
      co_return Value::Object{{"events", list_of(*found)}};
    }
    timer.expires_after(kFollowStep);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

Task<Answer> Api::queue() {
  const auto books = co_await backstage_.reader.books();
  if (!books) co_return fail(books.error());
  Value notifications = Value(Value::Array());
  if (backstage_.notifications) {
    DRIFTD_CO_TRY(notifications, co_await backstage_.notifications());
  }
  const auto view = backstage_.control.view();
  co_return Value::Object{{"notifications", notifications},
                          {"sinks", list_of(view.sinks)},
                          {"books", list_of(*books)},
                          {"backlog_events", number(view.backlog_events)},
                          {"backlog_bytes", number(view.backlog_bytes)}};
}

Task<Answer> Api::dead_letters(Request request) {
  DRIFTD_CO_CHECK(only(request, {"sink", "limit"}));
  DRIFTD_CO_TRY(const std::int64_t limit, parse_number("limit", query(request, "limit"), 100, 1, 1000));
  const auto letters = co_await backstage_.reader.dead_letters(query(request, "sink"), static_cast<int>(limit));
  if (!letters) co_return fail(letters.error());
  co_return Value::Object{{"dead_letters", list_of(*letters)}};
}

Task<Answer> Api::audit(Request request) {
  DRIFTD_CO_CHECK(only(request, {"limit"}));
  DRIFTD_CO_TRY(const std::int64_t limit, parse_number("limit", query(request, "limit"), 100, 1, kMostRows));
  const auto rows = co_await backstage_.reader.audit(static_cast<int>(limit));
  if (!rows) co_return fail(rows.error());
  co_return Value::Object{{"audit", list_of(*rows)}};
}

Task<Answer> Api::decide(std::string drift_id, std::string verb, Request request) {
  DRIFTD_CO_TRY(core::Decision decision, decision_of(verb, request, SystemClock().wall()));
  const auto drift = co_await backstage_.control.decide(std::move(drift_id), std::move(decision));
  if (!drift) co_return fail(drift.error());
  co_return Value::Object{{"drift", to_json(*drift)}};
}

Task<Answer> Api::refresh(Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  const std::string backend = fields.text("backend");
  const bool full = fields.flag("full");
  DRIFTD_CO_CHECK(fields.check());
  const auto done = co_await backstage_.control.refresh(backend, full);
  if (!done) co_return fail(done.error());
  co_return Value::Object{{"refreshed", list_of(*done)}};
}

Task<Answer> Api::explain(Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  const std::string backend = fields.text("backend");
  const std::string resource = fields.text("resource");
  const std::string path = fields.text("path");
  DRIFTD_CO_CHECK(fields.check());
  DRIFTD_CO_TRY(core::ResourceId id, parse_resource(resource));
  const auto steps = co_await backstage_.control.explain(backend, std::move(id), path);
  if (!steps) co_return fail(steps.error());
  co_return Value::Object{{"steps", list_of(*steps)}};
}

Task<Answer> Api::replay(Request request) {
  DRIFTD_CO_TRY(core::Control::Replay wanted, replay_of(request));
  const auto count = co_await backstage_.control.replay(std::move(wanted));
  if (!count) co_return fail(count.error());
  co_return count_of(*count);
}

Task<Answer> Api::settle_dead(std::string verb, Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  const std::string sink = fields.text("sink");
  auto seqs = fields.numbers("seqs");
  DRIFTD_CO_CHECK(fields.check());
  if (sink.empty()) co_return fail(Code::invalid, "'sink' is missing: name the sink whose dead letters are meant");
  const auto count = co_await backstage_.control.dead_letter(sink, std::move(verb), std::move(seqs));
  if (!count) co_return fail(count.error());
  co_return count_of(*count);
}

}  // namespace driftd::admin
