// SPDX-License-Identifier: Apache-2.0
// Backends and credentials from driftd's agent over gRPC. A library of its own, driftd_consumer_grpc, so that an
// application that does not ask an agent needs no gRPC.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "driftd/consumer/backend.hpp"
#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {

/// Where the agent is and who asks (docs/grpc.md).
struct AgentAccess {
  std::string target;  ///< `unix:/run/driftd/grpc.sock`, or `host:port`, which always is TLS
  std::string ca;      ///< PEM file of the agent's authority; empty: the system's. Of this and the next two, new files
                       ///< are used within seconds
  std::string cert, key;                     ///< PEM files that this application shows; empty: none
  std::string token_file;                    ///< file with a bearer token, read for each call; empty: none
  std::chrono::milliseconds timeout{5'000};  ///< of one call
  int breaker_failures = 3;                  ///< calls in a row without an answer that open the circuit
  std::chrono::milliseconds breaker_first{1'000}, breaker_max{30'000};  ///< how long it is open
};

/// A connection to an agent, which the source and the resolver share. It connects by itself, again and again. While the
/// agent is away, calls fail at once, except one now and then that tries. Any thread.
class AgentLink;

/// Returns `invalid`, with the member, for an access that cannot work. Does not wait for the agent.
Result<std::shared_ptr<AgentLink>> link_agent(AgentAccess access);

/// Who turns the references of the agent's configuration into values.
enum class ResolvedBy {
  agent,       ///< the agent, for a caller with the right `resolve`: use agent_resolver() for Scheme::agent
  application  ///< this application, by the resolvers of `env:` and `file:`: it has the same files in the same places
};

/// Gets backends by GetBackend. Settings become `config`, without user names, passwords and tokens; every reference in
/// the settings becomes a credential: `password` of the setting `password`, and also of `auth.sasl.password` unless
/// another one nearer the top has that name; then it is `auth.sasl.password`. `k8s:` references are the application's
/// own to resolve. An answer is an error (`invalid`) if the agent's configuration has a password in clear, because the
/// agent gives none.
/// While the agent is away, the answer is what it said last, or what `fallback` says of a backend that it was not asked
/// for before; both are provisional. Null: no fallback.
std::unique_ptr<BackendSource> agent_source(std::shared_ptr<AgentLink> link, ResolvedBy resolved_by = ResolvedBy::agent,
                                            std::unique_ptr<BackendSource> fallback = file_source());

/// Resolves `agent:<backend>#<reference>` by ResolveCredentials, one call for each backend. While the agent is away,
/// the values are those that it gave last, kept in this process's memory only; a refusal forgets them.
std::unique_ptr<CredentialResolver> agent_resolver(std::shared_ptr<AgentLink> link);

/// Reads the agent's events about these backends (none: all) and calls `changed` for each, and once when the stream
/// stands: what happened before was not seen. Returns when the stream ends, with why, or after `stop`, with success.
/// The caller calls it again, after a wait.
Status follow_agent(AgentLink& link, const std::vector<std::string>& backends, const std::function<void()>& changed,
                    std::stop_token stop);

}  // namespace driftd::consumer
