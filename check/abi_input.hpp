// SPDX-License-Identifier: Apache-2.0
// Copies the ABI's structs into our own values. Whatever breaks a rule is recorded with the host and read as well as
// possible.
#pragma once

#include "check/host.hpp"

namespace driftd::check {

/// Copies a borrowed text. Records a violation of schema.text that names `member` if the text is longer than
/// `max_bytes` or is not UTF-8.
std::string parse_text(driftd_str given, const char* member, std::size_t max_bytes = 4u << 10);
void parse_records(HostCall& call, const driftd_record* records, std::uint32_t count, std::uint32_t stride);
void parse_mark(HostCall& call, const driftd_mark* mark);
Diagnostic parse_diagnostic(const driftd_diagnostic* diagnostic);
core::HealthReport parse_health(const driftd_health* health);
Verdict parse_verdict(const driftd_verdict* verdict);
/// Converts a status that `of` returned. Records a violation of schema.statuses if the number is unknown.
Code parse_status(driftd_status status, const char* of);

/// Copies a struct that may be older and therefore shorter than ours. Missing members are zero.
template <class T>
T copy_struct(const void* given) {
  T out{};
  std::uint32_t size = 0;
  __builtin_memcpy(&size, given, sizeof size);
  __builtin_memcpy(static_cast<void*>(&out), given, size < sizeof out ? size : sizeof out);
  return out;
}

}  // namespace driftd::check
