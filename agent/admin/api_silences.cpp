// SPDX-License-Identifier: Apache-2.0
// Silences: no notification is sent about what they match.
#include "admin/api.hpp"
#include "admin/fields.hpp"
#include "admin/json.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;

constexpr std::int64_t kLongest = 365 * 86'400;  // seconds

Value shown(const core::Silence& silence) {
  return Value::Object{{"id", silence.id},
                       {"backend", silence.backend},
                       {"kind", silence.kind},
                       {"resource_id", silence.name},
                       {"class", silence.cls},
                       {"author", silence.author},
                       {"reason", silence.reason},
                       {"created", render_time(silence.created_ns)},
                       {"expires", render_time(silence.expires_ns)}};
}

Result<core::Silence> parse_silence(const Request& request, Nanos now) {
  DRIFTD_TRY(Fields fields, Fields::parse(request.body));
  core::Silence out;
  out.backend = fields.text("backend");
  out.kind = fields.text("kind");
  out.name = fields.text("resource_id");
  out.cls = fields.text("class");
  out.author = request.actor;
  out.reason = fields.reason();
  const std::int64_t lasts = fields.number("seconds", 0);
  DRIFTD_CHECK(fields.check());
  if (out.backend.empty() && out.kind.empty() && out.name.empty() && out.cls.empty()) {
    return fail(Code::invalid,
                "a silence must say what it is about: one of 'backend', 'kind', 'resource_id' and 'class', names or "
                "globs");
  }
  if (out.reason.empty()) return fail(Code::invalid, "'reason' is missing: say why nobody should be notified");
  if (lasts < 1 || lasts > kLongest) {
    return fail(Code::invalid, "'seconds' must be from 1 to 31536000 (365 days): when the silence ends");
  }
  out.created_ns = now;
  out.expires_ns = now + lasts * 1'000'000'000;
  return out;
}

}  // namespace

Task<Answer> Api::silences() {
  const auto found = co_await deps_.control.silences();
  if (!found) co_return fail(found.error());
  Value::Array out;
  for (const auto& one : *found) out.push_back(shown(one));
  co_return Value::Object{{"silences", Value(std::move(out))}};
}

Task<Answer> Api::change_silences(Request request, core::AuditEntry line) {
  if (request.path == "/v1/silences/add") {
    DRIFTD_CO_TRY(core::Silence silence, parse_silence(request, SystemClock().wall()));
    const auto added = co_await deps_.control.add_silence(std::move(silence), std::move(line));
    if (!added) co_return fail(added.error());
    co_return Value::Object{{"silence", shown(*added)}};
  }
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  std::string id = fields.text("id");
  DRIFTD_CO_CHECK(fields.check());
  const auto ended = co_await deps_.control.expire_silence(std::move(id), std::move(line));
  if (!ended) co_return fail(ended.error());
  co_return Value::Object{{"silence", shown(*ended)}};
}

}  // namespace driftd::admin
