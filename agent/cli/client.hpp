// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "core/value/value.hpp"

namespace driftd::cli {

/// Ends a command early: the message to print and the exit code.
struct Failure {
  int exit = 1;         ///< an ExitCode
  std::string message;  ///< one line for a person
};
template <class T>
using Outcome = tl::expected<T, Failure>;

/// The agent's answer as it came.
struct Reply {
  int status = 0;    ///< of HTTP
  std::string body;  ///< not parsed
};

using Query = std::map<std::string, std::string>;  ///< parameters with empty values are not sent

/// The agent's API over its Unix socket. Makes one request at a time.
class Client {
 public:
  explicit Client(std::string socket) : socket_(std::move(socket)) {}
  /// For an unknown socket: every request fails with `failure`.
  explicit Client(Failure failure) : unknown_(std::move(failure)) {}

  /// Both return the answer's JSON. They fail with kUnreachable if no agent answers within `timeout`, with kUsage for
  /// status 400, and with kFinding for any other refusal and for an answer that is not valid JSON.
  Outcome<core::Value> get(const std::string& path, const Query& query = {},
                           std::chrono::seconds timeout = std::chrono::seconds(40)) const;
  Outcome<core::Value> post(const std::string& path, const core::Value& body,
                            std::chrono::seconds timeout = std::chrono::seconds(600)) const;
  /// Requests any path. Fails only if no agent answers (exit code 69).
  Outcome<Reply> raw(const std::string& target, const std::string* body, std::chrono::seconds timeout) const;
  const std::string& socket() const { return socket_; }

 private:
  std::string socket_;              ///< path
  std::optional<Failure> unknown_;  ///< set: there is no socket to ask
};

/// Percent-encodes everything but the unreserved characters of RFC 3986.
std::string escape(std::string_view text);

}  // namespace driftd::cli
