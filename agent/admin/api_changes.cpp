// SPDX-License-Identifier: Apache-2.0
// Requests that change something, and their lines in the audit log.
#include <algorithm>
#include <atomic>
#include <set>

#include "admin/fields.hpp"
#include "admin/json.hpp"
#include "admin/query.hpp"
#include "base/escape.hpp"
#include "base/log.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;

constexpr const char* kDryRun = "enforce dry run";  // it asks the system, and no operation of it is stored
constexpr std::size_t kMaxOutcome = 1024;           // bytes of an audit line's reason why a request failed
constexpr std::size_t kMaxResult = 4096;            // bytes of what a reload changed

Result<core::Decision> parse_decision(const std::string& verb, const Request& request, Nanos now) {
  using Verb = core::Decision::Verb;
  DRIFTD_TRY(Fields fields, Fields::parse(request.body));
  core::Decision out;
  out.verb = verb == "approve"  ? Verb::approve
             : verb == "reject" ? Verb::reject
             : verb == "ignore" ? Verb::ignore
                                : Verb::undo;
  out.actor = request.actor;
  out.reason = fields.reason();
  if (auto digest = fields.text("digest"); !digest.empty()) out.digest = std::move(digest);
  out.take_over = fields.flag("take_over");
  const std::int64_t lasts = fields.number("expires_seconds", 0);
  DRIFTD_CHECK(fields.check());
  if (!out.digest && out.verb != Verb::undo) {
    return fail(Code::invalid,
                "'digest' is missing: send {\"digest\":\"…\"} with the digest of the drift as GET /v1/drifts shows "
                "it, or at least its first 8 characters, so that you " +
                    verb + " the value that you saw");
  }
  out.caller = request.caller;
  if (lasts < 0 || lasts > 3650ll * 86'400) return fail(Code::invalid, "'expires_seconds' must be from 1 to 315360000");
  if (lasts > 0) out.expires_ns = now + lasts * 1'000'000'000;
  out.at_ns = now;
  return out;
}

/// `verb` is claim or release.
Result<core::Claim> parse_claim(const std::string& verb, const Request& request, Nanos now) {
  constexpr std::int64_t kDefault = 15 * 60, kLongest = 7 * 86'400;
  DRIFTD_TRY(Fields fields, Fields::parse(request.body));
  core::Claim out;
  out.actor = request.actor;
  out.caller = request.caller;
  out.reason = fields.reason();
  out.at_ns = now;
  out.take_over = fields.flag("take_over");
  const std::int64_t lasts = verb == "claim" ? fields.number("seconds", kDefault) : 0;
  DRIFTD_CHECK(fields.check());
  if (verb == "release") return out;
  if (lasts < 1 || lasts > kLongest) {
    return fail(Code::invalid, "'seconds' must be from 1 to 604800 (7 days): how long you look after the drift");
  }
  out.until_ns = now + lasts * 1'000'000'000;
  return out;
}

Result<core::Control::Replay> parse_replay(const Request& request) {
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

bool is_decision_verb(const std::string& verb) {
  return verb == "approve" || verb == "reject" || verb == "ignore" || verb == "undo" || verb == "claim" ||
         verb == "release";
}

bool is_decision(const std::vector<std::string>& parts) {
  return parts.size() == 4 && parts[0] == "v1" && parts[1] == "drifts" && is_decision_verb(parts[3]);
}

bool is_enforcement(const std::vector<std::string>& parts) {
  if (parts.size() == 3 && parts[0] == "v1" && parts[1] == "enforce") return parts[2] == "on" || parts[2] == "off";
  return parts.size() == 4 && parts[0] == "v1" && parts[1] == "drifts" &&
         (parts[3] == "enforce" || parts[3] == "resume");
}

/// Returns a member of a request's body as text for the audit line, also if the body is not a valid request.
std::string text_of(const Value& body, const std::string& name) {
  const Value* found = body.find(name);
  if (found == nullptr || found->is_null()) return {};
  return core::shortened(found->string() != nullptr ? *found->string() : core::render(*found), 256);
}

/// Returns a name that no other request of this store has: the requests of one process are counted, and a store has one
/// process at a time.
std::string new_request(Nanos at) {
  static std::atomic<std::uint32_t> requests{0};
  return "r-" + std::to_string(at) + "-" + std::to_string(++requests);
}

core::AuditEntry entry_of(const Request& request) {
  core::AuditEntry out;
  out.at_ns = SystemClock().wall();
  out.actor = request.actor;
  out.caller = request.caller;
  out.verb = request.method + " " + request.path;
  return out;
}

/// Returns the audit line of a request that changes something, as far as the request can be read.
core::AuditEntry audit_line(const Request& request, const std::vector<std::string>& parts) {
  core::AuditEntry out = entry_of(request);
  auto parsed = request.body.empty() ? Result<Value>(Value(Value::Object())) : core::parse(request.body);
  const Value body = parsed && parsed->object() != nullptr ? std::move(*parsed) : Value(Value::Object());
  out.reason = text_of(body, "reason");
  if (is_enforcement(parts)) {
    const bool drift = parts[1] == "drifts";
    out.verb = drift ? (parts[3] == "resume" ? "enforce resume" : "enforce") : "enforce " + parts[2];
    if (const Value* dry = body.find("dry_run");
        drift && dry != nullptr && dry->boolean() != nullptr && *dry->boolean())
      out.verb = kDryRun;
    out.subject = drift ? escaped(core::shortened(parts[2], 64)) : "enforcement";
    out.digest = text_of(body, "digest");
    return out;
  }
  if (is_decision(parts)) {
    out.verb = parts[3];
    out.subject = escaped(core::shortened(parts[2], 64));  // it comes from the URL and may be any bytes
    out.digest = text_of(body, "digest");
    return out;
  }
  out.verb = request.path.substr(std::string("/v1/").size());
  std::replace(out.verb.begin(), out.verb.end(), '/', ' ');
  const std::string backend = text_of(body, "backend"), sink = text_of(body, "sink");
  if (request.path == "/v1/reload") out.subject = "configuration";
  if (request.path == "/v1/refresh") {
    out.backend = backend;
    out.subject = backend.empty() ? "all backends" : backend;
  }
  if (request.path == "/v1/plugins/resume") out.subject = text_of(body, "name");
  if (request.path == "/v1/replay") {
    out.subject = sink + " from " + text_of(body, "from_seq") + text_of(body, "from_id") + text_of(body, "from_time");
  }
  if (parts[1] == "silences") {
    out.backend = backend;
    for (const char* name : {"id", "backend", "kind", "resource_id", "class", "seconds"}) {
      const std::string given = text_of(body, name);
      if (!given.empty()) out.subject += (out.subject.empty() ? "" : ", ") + std::string(name) + " " + given;
    }
  }
  if (parts[1] == "deadletters") {
    const std::string seqs = text_of(body, "seqs");
    out.subject = sink + ": " + (seqs.empty() || seqs == "[]" ? "all" : seqs);
  }
  return out;
}

bool is_silence(const std::string& path) { return path == "/v1/silences/add" || path == "/v1/silences/expire"; }

bool is_change(const std::string& path) {
  static const std::set<std::string> kChangePaths = {"/v1/refresh", "/v1/plugins/resume",     "/v1/replay",
                                                     "/v1/reload",  "/v1/deadletters/replay", "/v1/deadletters/drop"};
  return kChangePaths.contains(path);
}

/// Adds what only the answer tells: what a reload changed.
void note_result(const Value& answer, core::AuditEntry& line) {
  const Value* applied = answer.find("applied");
  std::string all;
  for (const auto& one : applied != nullptr && applied->array() != nullptr ? *applied->array() : Value::Array()) {
    if (one.string() != nullptr) all += (all.empty() ? "" : "; ") + *one.string();
  }
  if (!all.empty()) line.reason = core::shortened(std::move(all), kMaxResult);
}

/// The message repeats parts of the request, which may be any bytes; unescaped they would make the log invalid JSON.
std::string outcome_text(const Error& error) {
  return escaped(core::shortened(std::string(render(error.code)) + ": " + error.message, kMaxOutcome));
}

}  // namespace

/// The line of a decision, of an enforcement or of a silence is written together with it. Any other request has a line
/// `asked …` before the change, because what cannot be audited is not done, and one about how it ended; both have the
/// same `request`.
Task<Answer> Api::post(Request request) {
  if (request.path == "/v1/explain") co_return co_await explain(std::move(request));
  const auto parts = segments(request.path);
  const bool decision = is_decision(parts) || is_enforcement(parts) || is_silence(request.path);
  if (!decision && !is_change(request.path)) co_return fail(no_such_path(request));
  core::AuditEntry line = audit_line(request, parts);
  if (!request.may_decide) {
    const Error denied{Code::denied, "user " + request.actor + " may look at this agent, but not " + line.verb +
                                         "; ask for membership in admin.decide_group"};
    // named, because g++ 12 destroys temporaries of a co_await expression twice
    std::string asked = line.verb + " " + line.subject;
    co_await audit_denial(line.actor, line.caller, std::move(asked), denied);
    co_return fail(denied);
  }
  if (!decision) {
    line.request = new_request(line.at_ns);
    core::AuditEntry asked = line;
    asked.verb = std::string(core::kAsked) + line.verb;
    DRIFTD_CO_CHECK(co_await deps_.control.audit(std::move(asked)));
  }
  auto done = co_await do_change(std::move(request), line);
  if (done && decision && line.verb != kDryRun) co_return done;
  line.at_ns = SystemClock().wall();
  if (done) {
    note_result(*done, line);
    const std::string verb = line.verb;
    const Status ended = co_await deps_.control.audit(std::move(line));
    // it is done, and cannot be undone; the next start writes that its outcome is not known
    if (!ended)
      log::room("admin").error("'{}' was done, but the audit log lacks that: {}", verb, ended.error().message);
    co_return done;
  }
  line.outcome = outcome_text(done.error());
  const Status written = co_await deps_.control.audit(std::move(line));
  if (written) co_return done;
  // nothing was changed; the code of the refusal matters more than that the log lacks it
  Error both = done.error();
  both.message += "; this refusal is not in the audit log: " + written.error().message;
  log::room("admin").error("{}", both.message);
  co_return fail(std::move(both));
}

Task<void> Api::audit_denial(std::string actor, core::Caller caller, std::string asked, Error error) {
  const core::Denials::Who who{std::to_string(caller.uid), actor, caller};
  const auto unwritten = denials_.admit(who, core::Denials::Clock::now());
  if (!unwritten) co_return;
  core::AuditEntry line;
  line.at_ns = SystemClock().wall();
  line.actor = std::move(actor);
  line.caller = std::move(caller);
  line.verb = "refused";
  line.subject = escaped(core::shortened(std::move(asked), 200));
  line.outcome = outcome_text(error);
  if (*unwritten > 0) line.reason = "and " + std::to_string(*unwritten) + " more of this user since the last line";
  log::room("admin").warn("refused {} (uid {}, pid {}): {}: {}", line.actor, line.caller.uid, line.caller.pid,
                          line.subject, line.outcome);
  const Status written = co_await deps_.control.audit(std::move(line));
  if (!written) log::room("admin").error("the refusal is not in the audit log: {}", written.error().message);
}

Task<void> Api::audit_unwritten_denials(bool all) {
  auto lines = denials_.unwritten_lines(core::Denials::Clock::now(), SystemClock().wall(), all);
  for (auto& line : lines) {
    const Status written = co_await deps_.control.audit(std::move(line));
    if (!written) log::room("admin").error("refusals are not in the audit log: {}", written.error().message);
  }
}

Task<Answer> Api::do_change(Request request, core::AuditEntry line) {
  const auto parts = segments(request.path);
  const std::string path = request.path;
  if (parts.size() == 4 && parts[0] == "v1" && parts[1] == "drifts" && is_decision_verb(parts[3])) {
    co_return co_await decide(parts[2], parts[3], std::move(request));
  }
  if (is_enforcement(parts)) {
    std::string verb = parts.back(), about;
    if (parts[1] == "drifts") about = parts[2];
    co_return co_await enforce(std::move(verb), std::move(about), std::move(request));
  }
  if (path == "/v1/refresh") co_return co_await refresh(std::move(request));
  if (path == "/v1/plugins/resume") co_return co_await resume(std::move(request));
  if (path == "/v1/replay") co_return co_await replay(std::move(request));
  if (path == "/v1/deadletters/replay") co_return co_await settle_dead("replay", std::move(request));
  if (path == "/v1/deadletters/drop") co_return co_await settle_dead("drop", std::move(request));
  if (is_silence(path)) co_return co_await change_silences(std::move(request), std::move(line));
  if (path == "/v1/reload") {
    const auto reloaded = co_await deps_.control.reload();
    if (!reloaded) co_return fail(reloaded.error());
    co_return to_json(*reloaded);
  }
  co_return fail(no_such_path(request));
}

Task<Answer> Api::decide(std::string drift_id, std::string verb, Request request) {
  if (verb == "claim" || verb == "release") {
    DRIFTD_CO_TRY(core::Claim claim, parse_claim(verb, request, SystemClock().wall()));
    const auto claimed = co_await deps_.control.claim(std::move(drift_id), std::move(claim));
    if (!claimed) co_return fail(claimed.error());
    co_return Value::Object{{"drift", shown_drift(*claimed)}};
  }
  DRIFTD_CO_TRY(core::Decision decision, parse_decision(verb, request, SystemClock().wall()));
  const auto drift = co_await deps_.control.decide(std::move(drift_id), std::move(decision));
  if (!drift) co_return fail(drift.error());
  co_return Value::Object{{"drift", shown_drift(*drift)}};
}

Task<Answer> Api::refresh(Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  const std::string backend = fields.text("backend");
  const bool full = fields.flag("full");
  DRIFTD_CO_CHECK(fields.check());
  const auto done = co_await deps_.control.refresh(backend, full);
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
  const auto steps = co_await deps_.control.explain(backend, id, path);
  if (!steps) co_return fail(steps.error());
  co_return Value::Object{{"steps", list_of(*steps)}, {"held", holds_of(backend, id)}};
}

Task<Answer> Api::replay(Request request) {
  DRIFTD_CO_TRY(core::Control::Replay wanted, parse_replay(request));
  const auto count = co_await deps_.control.replay(std::move(wanted));
  if (!count) co_return fail(count.error());
  co_return count_of(*count);
}

Task<Answer> Api::settle_dead(std::string verb, Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  const std::string sink = fields.text("sink");
  auto seqs = fields.numbers("seqs");
  DRIFTD_CO_CHECK(fields.check());
  if (sink.empty()) co_return fail(Code::invalid, "'sink' is missing: name the sink whose dead letters are meant");
  DRIFTD_CO_CHECK(co_await check_sink(sink));
  const auto count = co_await deps_.control.dead_letter(sink, std::move(verb), std::move(seqs));
  if (!count) co_return fail(count.error());
  co_return count_of(*count);
}

}  // namespace driftd::admin
