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
  int exit = 1;
  std::string message;
};
template <class T>
using Outcome = tl::expected<T, Failure>;

struct Reply {
  int status = 0;
  std::string body;
};

using Query = std::map<std::string, std::string>;  ///< parameters with empty values are not sent

/// The agent's API over its Unix socket. Makes one request at a time.
class Client {
 public:
  explicit Client(std::string socket) : socket_(std::move(socket)) {}
  /// For an unknown socket: every request fails with `failure`.
  explicit Client(Failure failure) : unknown_(std::move(failure)) {}

  Outcome<core::Value> get(const std::string& path, const Query& query = {},
                           std::chrono::seconds timeout = std::chrono::seconds(40)) const;
  Outcome<core::Value> post(const std::string& path, const core::Value& body,
                            std::chrono::seconds timeout = std::chrono::seconds(600)) const;
  /// Requests any path. Fails only if no agent answers (exit code 69).
  Outcome<Reply> raw(const std::string& target, const std::string* body, std::chrono::seconds timeout) const;
  const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
  std::optional<Failure> unknown_;
};

/// Percent-encodes everything but the unreserved characters of RFC 3986.
std::string escape(std::string_view text);

}  // namespace driftd::cli
