// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "redis/settings.hpp"

struct redisContext;

namespace driftd::redis {

/// A RESP2 reply: text (status, bulk), number, or list.
struct Reply {
  enum class Type { nil, text, number, list } type = Type::nil;
  std::string text;
  long long number = 0;
  std::vector<Reply> list;
};

/// One connection to a server. Not thread-safe. Every wait ends at the call's deadline, at cancellation, or after the
/// settings' time-outs; all failures are sdk::Failure with the code that says what the scheduler must do.
class Client {
 public:
  /// Connects and authenticates. UNAVAILABLE, UNAUTHENTICATED, DEADLINE, CANCELLED.
  static std::unique_ptr<Client> connect(sdk::Call& call, const Settings& settings, std::chrono::milliseconds most);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// One command. `right` is the ACL rule that it needs; a NOPERM answer becomes DENIED naming it, for `kind`.
  Reply command(sdk::Call& call, const std::vector<std::string>& words, const std::string& kind,
                const std::string& right);

 private:
  Client(redisContext* context, std::string where, std::chrono::milliseconds call_most);
  void wait(sdk::Call& call, short events, std::chrono::steady_clock::time_point until) const;
  Reply roundtrip(sdk::Call& call, const std::vector<std::string>& words, std::chrono::milliseconds most);

  redisContext* context_;
  std::string where_;  ///< `redis 127.0.0.1:6379`, for messages
  std::chrono::milliseconds call_most_;

};

}  // namespace driftd::redis
