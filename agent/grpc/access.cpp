// SPDX-License-Identifier: Apache-2.0
#include "grpc/access.hpp"

#include "base/escape.hpp"
#include "base/log.hpp"

namespace driftd::rpc {
namespace {

constexpr std::size_t kMaxSubject = 200, kMaxOutcome = 1024;  // bytes

/// Returns the address without its port, as `ipv4:10.0.0.7`.
std::string host_of(const std::string& peer) {
  const bool has_port = peer.starts_with("ipv4:") || peer.starts_with("ipv6:");
  return has_port ? peer.substr(0, peer.rfind(':')) : peer;
}

/// The message may repeat parts of the request, which may be any bytes.
std::string outcome_of(const Error& error) {
  return escaped(core::shortened(std::string(render(error.code)) + ": " + error.message, kMaxOutcome));
}

bool is_refusal(Code code) { return code == Code::denied || code == Code::unauthenticated; }

Result<Caller> judge(Shared& shared, const Result<Caller>& caller, Rights needed) {
  if (shared.stopping) return fail(Code::unavailable, "the agent stops; try again");
  if (!caller || caller->rights >= needed) return caller;
  return fail(Code::denied, caller->name + " may " + (caller->rights == Rights::read ? "read" : "do nothing") +
                                "; this call needs the right to decide");
}

}  // namespace

Task<Result<Caller>> authorise(Shared& shared, const ::grpc::ServerContextBase& context, Rights needed,
                               std::string asked) {
  const auto caller = identify(context, shared.settings, shared.peers);
  auto judged = judge(shared, caller, needed);
  if (judged || !is_refusal(judged.error().code)) co_return judged;
  const std::string peer = context.peer();
  std::string from = caller ? caller->name : host_of(peer);
  core::AuditEntry line;
  line.actor = caller ? caller->name : "unknown";
  if (caller) line.caller = caller->process;
  line.subject = escaped(core::shortened(std::move(asked), kMaxSubject));
  if (!peer.starts_with("fd:")) line.reason = "from " + core::shortened(peer, 64);
  Error error = judged.error();
  co_await audit_refusal(shared, std::move(from), std::move(line), std::move(error));
  co_return judged;
}

Task<void> audit_refusal(Shared& shared, std::string from, core::AuditEntry line, Error error) {
  const auto unwritten = shared.denials.admit(from, core::Denials::Clock::now(), line.actor);
  if (!unwritten) co_return;
  line.at_ns = SystemClock().wall();
  line.verb = "refused";
  line.outcome = outcome_of(error);
  if (*unwritten > 0) {
    line.reason += (line.reason.empty() ? "and " : "; and ") + std::to_string(*unwritten) +
                   " more of this caller since the last line";
  }
  log::room("sinks").warn("grpc: refused {}: {}: {}", line.actor, line.subject, line.outcome);
  const Status written = co_await shared.deps.audit(std::move(line));
  if (!written) log::room("sinks").error("grpc: the refusal is not in the audit log: {}", written.error().message);
}

Task<void> audit_unwritten_refusals(Shared& shared, bool all) {
  for (const auto& user : shared.denials.take_unwritten(core::Denials::Clock::now(), all)) {
    core::AuditEntry line;
    line.at_ns = SystemClock().wall();
    line.actor = user.actor;
    line.verb = "refused";
    line.subject = "further requests";
    line.outcome = "denied: " + std::to_string(user.count) + " more of this caller since the last line";
    if (user.caller != user.actor) line.reason = "from " + core::shortened(user.caller, 64);
    const Status written = co_await shared.deps.audit(std::move(line));
    if (!written) log::room("sinks").error("grpc: refusals are not in the audit log: {}", written.error().message);
  }
}

core::AuditEntry line_of(const Caller& caller, std::string verb, const std::string& subject) {
  core::AuditEntry out;
  out.at_ns = SystemClock().wall();
  out.actor = caller.name;
  out.caller = caller.process;
  out.verb = std::move(verb);
  out.subject = escaped(core::shortened(subject, kMaxSubject));
  return out;
}

/// What the agent could not do was not turned down, and may be made later, with the line of the change. Nobody waits
/// for a busy store only to have that said there.
Task<void> audit_failure(Shared& shared, core::AuditEntry line, Error error) {
  if (error.code == Code::unavailable) co_return;
  line.outcome = outcome_of(error);
  const std::string what = line.verb + " " + line.subject;
  const Status written = co_await shared.deps.audit(std::move(line));
  if (!written)
    log::room("sinks").error("grpc: '{}' failed, which is not in the audit log: {}", what, written.error().message);
}

}  // namespace driftd::rpc
