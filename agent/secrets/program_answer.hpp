// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace driftd::secrets {

/// What a program answered, as settings get it.
struct ProgramAnswer {
  std::string text;      ///< stdout without its trailing newline, as of files
  Nanos expires_ns = 0;  ///< of an ExecCredential; 0: it does not say
};

/// Reads stdout. An ExecCredential (client.authentication.k8s.io/v1 or v1beta1) stays what it is; its
/// status.expirationTimestamp is understood. `corrupt`: empty, a NUL byte, expired at `now`, or a time that is none. No
/// message holds a part of the answer but that time.
Result<ProgramAnswer> read_answer(std::string output, Nanos now);

/// How long after the answer to run again: 90 to 100 % of `refresh`; where it says when it expires, 75 to 85 % of what
/// is left then, at least a second. `jitter` is from 0 to 1.
std::chrono::milliseconds next_run(const ProgramAnswer& answer, std::chrono::milliseconds refresh, Nanos now,
                                   double jitter);

/// The last line of stderr that says something, on one line of at most 200 bytes, without the texts of `secrets`: each
/// as it is, by its lines, and by the strings in it where it is JSON.
std::string last_line(std::string_view errors, const std::vector<std::string>& secrets);

}  // namespace driftd::secrets
