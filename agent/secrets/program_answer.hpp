// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace driftd::secrets {

/// The answer of a program, as settings get it.
struct ProgramAnswer {
  std::string text;      ///< stdout without its trailing newline, as for secret files
  Nanos expires_ns = 0;  ///< expiry of an ExecCredential; 0 if it has none
};

/// Parses stdout. An ExecCredential (client.authentication.k8s.io/v1 or v1beta1) is kept as it is; only its
/// status.expirationTimestamp is read. Returns `corrupt` if the answer is empty, contains a NUL byte, is expired at
/// `now`, or has an invalid time. Error messages contain nothing of the answer except that time.
Result<ProgramAnswer> read_answer(std::string output, Nanos now);

/// Returns the time until the next run: 90 to 100 % of `refresh`; for an answer that expires, 75 to 85 % of the
/// remaining time, but at least a second. `jitter` is from 0 to 1.
std::chrono::milliseconds next_run(const ProgramAnswer& answer, std::chrono::milliseconds refresh, Nanos now,
                                   double jitter);

/// Returns the last non-empty line of stderr, on one line of at most 200 bytes, without the texts of `secrets`: each
/// whole, by its lines and, if it is JSON, by the strings in it.
std::string last_line(std::string_view errors, const std::vector<std::string>& secrets);

}  // namespace driftd::secrets
