// SPDX-License-Identifier: Apache-2.0
#include "admin/api.hpp"

#include <algorithm>

#include "admin/json.hpp"
#include "admin/query.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;
}  // namespace

std::string query_parameter(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

Status check_parameters(const Request& request, const std::vector<std::string>& allowed) {
  for (const auto& [name, value] : request.query) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      return fail(Code::invalid, "unknown query parameter '" + name + "'");
    }
  }
  return {};
}

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

int http_status(Code code) {
  switch (code) {
    case Code::ok:
      return 200;
    case Code::invalid:
      return 400;
    case Code::unauthenticated:
      return 401;
    case Code::denied:
      return 403;
    case Code::not_found:
      return 404;
    case Code::conflict:
      return 409;
    case Code::cursor_expired:
      return 410;
    case Code::throttled:
    case Code::budget:
      return 429;
    case Code::unsupported:
      return 501;
    case Code::unavailable:
    case Code::cancelled:
      return 503;
    case Code::deadline:
      return 504;
    case Code::corrupt:
    case Code::internal:
      break;
  }
  return 500;
}

Response error_response(const Error& error) {
  const Value body =
      Value::Object{{"error", Value::Object{{"code", std::string(render(error.code))}, {"message", error.message}}}};
  return {http_status(error.code), core::render(body) + "\n"};
}

Error memory_limit_error(const MemoryShare& share) {
  return {
      Code::unavailable,
      "the answers that connections to the API have not read yet leave no room for this one (maximum: " +
          std::to_string(share.max() >> 20) +
          " MiB together): read the answers that are under way, ask for less with limit=, or try again in a second"};
}

void fit_answer(Response& answer, MemoryShare& share, bool must) {
  if (must) return share.force_size(answer.body.size());
  if (!share.resize(answer.body.size())) {
    answer = error_response(memory_limit_error(share));
    share.force_size(answer.body.size());
  }
  if (answer.body.size() > MemoryShare::kNeverRefused)
    answer.body.shrink_to_fit();  // a grown string has up to twice the capacity it needs
  if (share.refused()) answer.retry_after = 1;
}

bool is_list(const std::string& path) {
  return path == "/v1/resources" || path == "/v1/drifts" || path == "/v1/events" || path == "/v1/deadletters" ||
         path == "/v1/audit";
}

Task<Response> Api::handle(Request request) {
  if (request.path == "/metrics" || request.path == "/livez" || request.path == "/readyz") {
    Response out = co_await probe(std::move(request));
    co_return out;
  }
  if (request.method == "GET" && is_list(request.path)) {
    auto text = co_await lists(std::move(request));
    if (!text) co_return error_response(text.error());
    co_return Response{200, std::move(*text)};
  }
  if (request.method == "POST" && request.path == "/v1/credentials/resolve") {
    Response out = co_await resolve_credentials(std::move(request));
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
  const core::AgentView view = deps_.control.view();
  if (request.path == "/readyz") {
    co_return Response{view.ready ? 200 : 503, view.ready ? "ok\n" : view.not_ready_reason + "\n",
                       "text/plain; charset=utf-8"};
  }
  const auto sink_totals = co_await deps_.reader.sink_totals();
  if (!sink_totals) co_return error_response(sink_totals.error());
  co_return Response{200, deps_.metrics.render(view, *sink_totals), "text/plain; version=0.0.4; charset=utf-8"};
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
  if (path == "/v1/status") co_return to_json(deps_.control.view());
  if (path == "/v1/backends") co_return Value::Object{{"backends", list_of(deps_.control.view().backends)}};
  if (path == "/v1/queue") co_return co_await queue();
  if (path == "/v1/silences") co_return co_await silences();
  if (path == "/v1/audit/verify") co_return co_await verify_audit(std::move(request));
  if (path == "/v1/schema") {
    auto text = co_await deps_.control.schema(query_parameter(request, "provider"), query_parameter(request, "what"));
    if (!text) co_return fail(text.error());
    co_return core::parse(*text);
  }
  if (path == "/v1/enforce") co_return enforcement();
  if (path == "/v1/operations") co_return co_await operations(std::move(request));
  if (path == "/v1/plugins") co_return co_await plugins();
  if (path == "/v1/plugins/describe") co_return co_await describe_plugin(std::move(request));
  const auto parts = segments(path);
  if (parts.size() == 4 && parts[0] == "v1" && parts[1] == "backends" && parts[3] == "discovered") {
    const auto outcome = co_await deps_.control.discover(parts[2]);
    if (!outcome) co_return fail(outcome.error());
    co_return to_json(*outcome);
  }
  co_return fail(no_such_path(request));
}

Task<Answer> Api::verify_audit(Request request) {
  DRIFTD_CO_CHECK(check_parameters(request, {"anchor"}));
  std::optional<core::AuditLink> anchor;
  if (const std::string given = query_parameter(request, "anchor"); !given.empty()) {
    DRIFTD_CO_TRY(anchor, core::parse_audit_link(given));
  }
  const auto proof = co_await deps_.reader.verify_audit(std::move(anchor));
  if (!proof) co_return fail(proof.error());
  co_return to_json(*proof);
}

}  // namespace driftd::admin
