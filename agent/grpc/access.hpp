// SPDX-License-Identifier: Apache-2.0
// Who may call, and what the audit log says about those who may not. Included by the sources of the services only.
#pragma once

#include <string>

#include "grpc/service.hpp"

namespace driftd::rpc {

/// Returns the caller if it has these rights. A refusal has a line in the audit log; `asked` says there what was asked
/// for, as `RegisterBackend orders`. The context must live until the task ends.
Task<Result<Caller>> authorise(Shared& shared, const ::grpc::ServerContextBase& context, Rights needed,
                               std::string asked);

/// Writes the line of a refusal, unless this caller has had too many in this minute: then the next one counts it.
/// `from` names who is counted together: a user, a certificate, or an address without its port.
Task<void> audit_refusal(Shared& shared, std::string from, core::AuditEntry line, Error error);

/// Writes a line for each caller whose last refusals had none. With `all` also about the minute that is not over.
Task<void> audit_unwritten_refusals(Shared& shared, bool all);

/// Returns the line about what the caller does.
core::AuditEntry line_of(const Caller& caller, std::string verb, const std::string& subject);

/// Writes the line of a call that changed nothing, with the reason. A log that cannot be written changes no answer.
Task<void> audit_failure(Shared& shared, core::AuditEntry line, Error error);

}  // namespace driftd::rpc
