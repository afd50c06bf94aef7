// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rate_limiter.hpp"
#include "config/resolve.hpp"
#include "core/ports/credentials.hpp"
#include "secrets/credential_files.hpp"

namespace driftd::secrets {

/// A grant of the configuration with its group looked up.
struct CredentialGrant : config::ResolveGrant {
  std::optional<std::uint32_t> gid{};
};

/// What CredentialAnswers need of the agent. All of it must outlive them.
struct CredentialNeeds {
  asio::any_io_executor core, io;
  const Clock* clock = nullptr;
  /// Returns the references in the settings of a backend; empty if there are none, or no such backend is configured.
  std::function<std::vector<config::CredentialUse>(const std::string& backend)> uses;
  /// Writes to the audit log. Success means that the line is durable.
  std::function<Task<Status>(core::AuditEntry)> audit;
};

/// The values behind references, for callers that hold a grant (docs/resolve.md). Values come from the agent's
/// environment and from files, and are read for each request: none is kept. Core thread.
class CredentialAnswers final : public core::Credentials {
 public:
  explicit CredentialAnswers(CredentialNeeds needs);
  /// Replaces the grants. Requests under way keep the right that they had. `per_minute`: of one caller, from 1 on.
  void set_grants(std::vector<CredentialGrant> grants, int per_minute);

  Task<Result<std::vector<Secret>>> resolve(core::CredentialRequest request) override;

 private:
  using Time = RateLimiter::Clock::time_point;
  struct Account {
    RateLimiter answers, refusal_lines;
    std::uint64_t unwritten = 0;  ///< refusals without an audit line since the last one
  };
  Account* account_of(const core::CredentialCaller& caller, Time now);
  bool holds_right(const core::CredentialCaller& caller, const std::string& backend) const;
  /// Returns the uses that the references name, or why there is no answer.
  Result<std::vector<config::CredentialUse>> check(const core::CredentialRequest& request) const;
  Task<Result<std::vector<Secret>>> read(std::vector<config::CredentialUse> uses);
  /// Writes the line of a refused request, unless the caller had too many. The refusal stands in any case.
  Task<void> audit_refusal(core::AuditEntry line, std::string caller, Error why);

  const CredentialNeeds needs_;
  CredentialFiles files_;
  std::vector<CredentialGrant> grants_;
  int per_minute_ = 1;
  RateLimiter refusal_lines_{std::chrono::milliseconds(2'000), 30};  ///< of all callers
  std::map<std::string, Account> accounts_;                          ///< by caller, a maximum of 1,024
};

}  // namespace driftd::secrets
