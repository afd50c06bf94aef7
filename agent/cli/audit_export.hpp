// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "cli/command.hpp"
#include "core/audit_text.hpp"

namespace driftd::cli {

struct ExportOptions {
  std::string format = "jsonl";
  std::string since, after;
  std::string sd_id = "driftd@32473";  // the number of the documentation, as the syslog sink has it
  bool follow = false;
  std::string to, ca, cert, key, state;  // of a syslog server; `to` empty: the output
};

/// Which lines an export has: from the first one on that is not before `since`. A later one of a clock that was set
/// back leaves no gap.
class SinceTime {
 public:
  explicit SinceTime(std::string since) : since_(std::move(since)) {}
  bool has(const core::Value& line);  ///< asked about each line, in their order

 private:
  std::string since_;
  bool begun_ = false;
};

/// Returns the line in the options' format, without a line end.
Outcome<std::string> render_line(const core::Value& line, const ExportOptions& options,
                                 const core::AuditOrigin& origin);

/// Returns who sends the lines, as the agent names itself.
Outcome<core::AuditOrigin> audit_origin(const Client& client);

/// Sends the lines to a syslog server over TLS, and remembers the last one that it has. Returns the exit code.
int forward_audit(const Context& context, const ExportOptions& options);

}  // namespace driftd::cli
