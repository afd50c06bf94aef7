// SPDX-License-Identifier: Apache-2.0
// Audit lines as text: JSON, from which the chain can be checked again, and the forms of log collectors.
#pragma once

#include <string>

#include "core/audit.hpp"
#include "core/value/value.hpp"

namespace driftd::core {

/// Returns all fields of a line. Its canonical rendering is one line of an export.
Value audit_json(const AuditRow& row);
/// Reads a line of an export. Returns `invalid` unless it is exactly what audit_json() gives for its fields.
Result<AuditRow> parse_audit_json(std::string_view line);

/// Who sends a line.
struct AuditOrigin {
  std::string host, agent, version;
};
/// Returns the line in ArcSight's Common Event Format, version 0, without a line end.
std::string render_cef(const AuditRow& row, const AuditOrigin& origin);
/// Returns the line as a message of RFC 5424 with structured data, without a line end. `sd_id`: `driftd@32473`.
std::string render_rfc5424(const AuditRow& row, const AuditOrigin& origin, const std::string& sd_id);

}  // namespace driftd::core
