// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "core/value/value.hpp"

namespace driftd::cli {

/// Why a command ends early: what to print and what to exit with.
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

using Query = std::map<std::string, std::string>;  ///< empty values are left out

/// The agent's API over its Unix socket. One request at a time.
class Client {
 public:
  explicit Client(std::string socket) : socket_(std::move(socket)) {}
  /// Which agent is meant is not known: every request fails like this.
  explicit Client(Failure failure) : unknown_(std::move(failure)) {}

  Outcome<core::Value> get(const std::string& path, const Query& query = {},
                           std::chrono::seconds timeout = std::chrono::seconds(40)) const;
  Outcome<core::Value> post(const std::string& path, const core::Value& body,
                            std::chrono::seconds timeout = std::chrono::seconds(600)) const;
  /// Any path; fails only when nobody answers (exit code 69).
  Outcome<Reply> raw(const std::string& target, const std::string* body, std::chrono::seconds timeout) const;
  const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
  std::optional<Failure> unknown_;
};

/// `%XX` for all but RFC 3986's unreserved characters.
std::string escape(std::string_view text);

}  // namespace driftd::cli
