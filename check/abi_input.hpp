// SPDX-License-Identifier: Apache-2.0
// From the ABI's structs to values of ours; what breaks a rule is noted with the host and read as well as it can be.
#pragma once

#include "check/host.hpp"

namespace driftd::check {

/// A borrowed text: at max_bytes `max_bytes` bytes of UTF-8, or a violation of schema.text that names `member`.
std::string parse_text(driftd_str given, const char* member, std::size_t max_bytes = 4u << 10);
void parse_records(HostCall& call, const driftd_record* records, std::uint32_t count, std::uint32_t stride);
void parse_mark(HostCall& call, const driftd_mark* mark);
Diagnostic parse_diagnostic(const driftd_diagnostic* diagnostic);
core::HealthReport parse_health(const driftd_health* health);
Verdict parse_verdict(const driftd_verdict* verdict);
/// A status as the host reads it; an unknown number is a violation of schema.statuses.
Code parse_status(driftd_status status, const char* of);

/// Reads a struct that may be older (shorter) than ours: what is missing is zero.
template <class T>
T copy_struct(const void* given) {
  T out{};
  std::uint32_t size = 0;
  __builtin_memcpy(&size, given, sizeof size);
  __builtin_memcpy(static_cast<void*>(&out), given, size < sizeof out ? size : sizeof out);
  return out;
}

}  // namespace driftd::check
