// SPDX-License-Identifier: Apache-2.0
#include "secrets/credential_answers.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>

#include "base/escape.hpp"
#include "base/log.hpp"
#include "core/value/path.hpp"

namespace driftd::secrets {
namespace {

using config::CredentialUse;
using std::chrono::milliseconds;

constexpr std::size_t kMaxReferences = 32, kMaxReference = 4'200, kMaxAccounts = 1'024, kMaxOutcome = 1'024;
constexpr milliseconds kMinute{60'000};
constexpr int kMaxRefusalLines = 5;  // in a minute, of one caller

bool is_process(const core::CredentialCaller& caller) { return caller.process.uid >= 0; }

/// Returns who the caller is for the limits. Two callers of different kinds never share a name.
std::string account_name(const core::CredentialCaller& caller) {
  if (is_process(caller)) return "uid:" + std::to_string(caller.process.uid);
  return caller.name;
}

bool is_certificate(const core::CredentialCaller& caller, const std::string& glob) {
  const core::Glob names = core::Glob::of_name(glob);
  return std::any_of(caller.certificates.begin(), caller.certificates.end(),
                     [&](const std::string& name) { return names.matches(std::string_view(name)); });
}

bool is_for(const CredentialGrant& grant, const core::CredentialCaller& caller) {
  const bool process = is_process(caller);
  if (grant.uid) return process && caller.process.uid == static_cast<std::int64_t>(*grant.uid);
  if (grant.gid) return process && std::find(caller.gids.begin(), caller.gids.end(), *grant.gid) != caller.gids.end();
  if (!grant.token.empty()) return !process && caller.token == grant.token;
  return !process && !grant.certificate.empty() && is_certificate(caller, grant.certificate);
}

/// Returns the reference without `${` and `}`: both forms name the same.
std::string_view bare(std::string_view reference) {
  const bool wrapped = reference.starts_with("${") && reference.ends_with('}');
  return wrapped ? reference.substr(2, reference.size() - 3) : reference;
}

/// Returns what the audit log says about a reference that a caller wrote. It may be a password in the wrong place, so
/// only one of the backend's own is repeated.
std::string shown(const std::string& reference, const std::vector<CredentialUse>& uses) {
  const auto same = [&](const CredentialUse& use) { return bare(use.reference) == bare(reference); };
  return std::any_of(uses.begin(), uses.end(), same) ? std::string(bare(reference)) : "(not one of this backend)";
}

core::AuditEntry line_of(const core::CredentialRequest& request, const std::vector<CredentialUse>& uses, Nanos now) {
  core::AuditEntry out;
  out.at_ns = now;
  out.actor = request.caller.name;
  out.caller = request.caller.process;
  out.verb = "resolve";
  out.backend = escaped(core::shortened(request.backend, 128));
  for (std::size_t i = 0; i < request.references.size() && i < kMaxReferences; ++i) {
    out.subject += (i == 0 ? "" : ", ") + shown(request.references[i], uses);
  }
  out.subject = escaped(std::move(out.subject));
  return out;
}

std::string outcome_text(const Error& error) {
  return escaped(core::shortened(std::string(render(error.code)) + ": " + error.message, kMaxOutcome));
}

Status check_form(const core::CredentialRequest& request) {
  const std::size_t count = request.references.size();
  if (request.backend.empty()) return fail(Code::invalid, "'backend' is missing: name the backend of the references");
  if (count == 0 || count > kMaxReferences) {
    return fail(Code::invalid, "'references' has " + std::to_string(count) + " entries; expected 1 to " +
                                   std::to_string(kMaxReferences));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = request.references[i].size();
    if (size > 0 && size <= kMaxReference) continue;
    return fail(Code::invalid, "reference " + std::to_string(i + 1) + " has " + std::to_string(size) +
                                   " bytes; expected 1 to " + std::to_string(kMaxReference));
  }
  return {};
}

Result<CredentialUse> find_use(const std::vector<CredentialUse>& uses, const core::CredentialRequest& request,
                               std::size_t index) {
  for (const auto& use : uses) {
    if (bare(use.reference) != bare(request.references[index])) continue;
    if (use.kind != CredentialUse::Kind::program) return use;
    return fail(Code::unsupported, "reference " + std::to_string(index + 1) +
                                       " is that of a program, whose answers are the agent's own logins and are not "
                                       "given to others; run the program yourself, or use a file");
  }
  return fail(Code::not_found, "reference " + std::to_string(index + 1) +
                                   " of the request is not one in the settings of "
                                   "backend '" +
                                   request.backend + "'; GetBackend shows those that are");
}

}  // namespace

CredentialAnswers::CredentialAnswers(CredentialNeeds needs)
    : needs_(std::move(needs)),
      files_(needs_.core, needs_.io) {}

void CredentialAnswers::set_grants(std::vector<CredentialGrant> grants, int per_minute) {
  grants_ = std::move(grants);
  if (per_minute != per_minute_) accounts_.clear();
  per_minute_ = per_minute;
}

CredentialAnswers::Account* CredentialAnswers::account_of(const core::CredentialCaller& caller, Time now) {
  const std::string name = account_name(caller);
  const auto found = accounts_.find(name);
  if (found != accounts_.end()) return &found->second;
  if (accounts_.size() >= kMaxAccounts) {
    std::erase_if(accounts_, [&](const auto& one) {
      const bool idle = one.second.answers.full(now) && one.second.refusal_lines.full(now);
      if (idle && one.second.unwritten > 0) {
        log::room("app").warn("{} more refusals to resolve for {} are not in the audit log", one.second.unwritten,
                              one.first);
      }
      return idle;
    });
  }
  if (accounts_.size() >= kMaxAccounts) return nullptr;
  const Account fresh{RateLimiter(std::max(kMinute / per_minute_, milliseconds(1)), per_minute_),
                      RateLimiter(kMinute / kMaxRefusalLines, kMaxRefusalLines)};
  return &accounts_.emplace(name, fresh).first->second;
}

bool CredentialAnswers::holds_right(const core::CredentialCaller& caller, const std::string& backend) const {
  return std::any_of(grants_.begin(), grants_.end(), [&](const CredentialGrant& grant) {
    return is_for(grant, caller) && std::any_of(grant.backends.begin(), grant.backends.end(), [&](const auto& glob) {
             return core::Glob::of_name(glob).matches(std::string_view(backend));
           });
  });
}

Result<std::vector<CredentialUse>> CredentialAnswers::check(const core::CredentialRequest& request) const {
  DRIFTD_CHECK(check_form(request));
  const std::string& name = request.caller.name;
  if (!request.caller.confidential) {
    return fail(Code::denied, "values are never sent over plain TCP; use the Unix socket, or grpc.tls");
  }
  if (request.caller.process.pid == ::getpid()) return fail(Code::denied, "a plugin may not ask its agent for values");
  if (!holds_right(request.caller, request.backend)) {
    return fail(Code::denied, name +
                                  " does not hold the right 'resolve' for this backend; whoever configures the agent "
                                  "gives it by an entry of resolve.grants");
  }
  const auto uses = needs_.uses(request.backend);
  std::vector<CredentialUse> out;
  for (std::size_t i = 0; i < request.references.size(); ++i) {
    DRIFTD_TRY(auto use, find_use(uses, request, i));
    out.push_back(std::move(use));
  }
  return out;
}

Task<Result<std::vector<Secret>>> CredentialAnswers::read(std::vector<CredentialUse> uses) {
  std::vector<std::filesystem::path> files;
  for (const auto& use : uses) {
    if (use.kind == CredentialUse::Kind::file) files.push_back(use.file);
  }
  DRIFTD_CO_TRY(auto texts, co_await files_.read(std::move(files)));
  std::vector<Secret> out;
  std::size_t next = 0;
  for (const auto& use : uses) {
    if (use.kind == CredentialUse::Kind::file) {
      out.push_back(std::move(texts[next++]));
      continue;
    }
    const char* value = std::getenv(use.variable.c_str());
    if (value == nullptr || *value == '\0') {
      co_return fail(Code::unavailable, "environment variable " + use.variable + " of the agent is not set or empty");
    }
    out.emplace_back(std::string(value));
  }
  co_return out;
}

Task<void> CredentialAnswers::audit_refusal(core::AuditEntry line, std::string caller, Error why) {
  const auto now = RateLimiter::Clock::now();
  const auto found = accounts_.find(caller);
  if (found == accounts_.end()) co_return;
  if (!found->second.refusal_lines.try_take(now) || !refusal_lines_.try_take(now)) {
    ++found->second.unwritten;
    co_return;
  }
  line.outcome = outcome_text(why);
  if (const auto more = std::exchange(found->second.unwritten, 0); more > 0) {
    line.reason = "and " + std::to_string(more) + " more of this caller since the last line";
  }
  log::room("app").warn("refused to resolve for {}: {}: {}", line.actor, line.backend, line.outcome);
  const Status written = co_await needs_.audit(std::move(line));
  if (!written) log::room("app").error("the refusal is not in the audit log: {}", written.error().message);
}

/// Reads first and writes the audit line then, because the line says how it ended. What cannot be audited is not given;
/// if the agent is killed in between, the log names an answer that nobody got, never the reverse.
Task<Result<std::vector<Secret>>> CredentialAnswers::resolve(core::CredentialRequest request) {
  const auto now = RateLimiter::Clock::now();
  const std::string caller = account_name(request.caller);
  core::AuditEntry line = line_of(request, needs_.uses(request.backend), needs_.clock->wall());
  Account* account = account_of(request.caller, now);
  auto uses = account == nullptr ? fail(Code::throttled, "too many callers ask for values; try again in a minute")
                                 : check(request);
  if (uses && !account->answers.try_take(now)) {
    uses = fail(Code::throttled, "more than resolve.per_minute (" + std::to_string(per_minute_) +
                                     ") requests of this caller; try again in a few seconds");
  }
  if (!uses) {
    co_await audit_refusal(std::move(line), caller, uses.error());
    co_return fail(uses.error());
  }
  auto values = co_await read(std::move(*uses));
  if (!values) line.outcome = outcome_text(values.error());
  const Status written = co_await needs_.audit(std::move(line));
  if (written) co_return values;
  log::room("app").error("no value is given, because the audit log cannot be written: {}", written.error().message);
  co_return fail(Code::unavailable,
                 "no value is given, because the audit log cannot be written: " + written.error().message);
}

}  // namespace driftd::secrets
