// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "net/stream.hpp"
#include "redis/settings.hpp"

struct redisReader;

namespace driftd::redis {

using net::Steady;

/// A RESP2 reply: text (status, bulk), number, list, or inside a list an error with its text.
struct Reply {
  enum class Type { nil, text, error, number, list } type = Type::nil;
  std::string text;
  long long number = 0;
  std::vector<Reply> list;
};

/// Overwrites the contents of a reply that holds secrets.
void wipe(Reply& reply);

/// One connection to a server. Not thread-safe. Every wait ends at the deadline of the call, at cancellation, or after
/// the time-outs of the settings. All failures are sdk::Failure with the code that tells the scheduler what to do.
class Client {
 public:
  /// Connects and authenticates. Throws UNAVAILABLE, UNAUTHENTICATED, DEADLINE, CANCELLED.
  static std::unique_ptr<Client> connect(sdk::Call& call, const Address& address, const Login& login,
                                         const Settings& settings, std::chrono::milliseconds timeout);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Runs one command. `right` is the ACL rule that it needs; a NOPERM answer becomes DENIED for `kind` with that
  /// right.
  Reply command(sdk::Call& call, const std::vector<std::string>& words, const std::string& kind,
                const std::string& right);
  /// Runs the commands in one MULTI and EXEC, so that no command of another client comes between them, and returns
  /// their answers. Throws as command() does; after that the connection must not be used again.
  std::vector<Reply> transaction(sdk::Call& call, const std::vector<std::vector<std::string>>& commands,
                                 const std::string& kind, const std::string& right);
  /// Returns the next message of a subscription; waits until the call is cancelled.
  Reply message(sdk::Call& call);
  const std::string& address() const { return address_; }  ///< `host:port` as connected to

 private:
  Client(std::unique_ptr<net::Stream> stream, std::string address, std::chrono::milliseconds call_most);
  void log_in(sdk::Call& call, const Login& login, std::chrono::milliseconds timeout);
  Reply roundtrip(sdk::Call& call, const std::vector<std::string>& words, std::chrono::milliseconds timeout);
  Reply answer(sdk::Call& call, const std::string& command, Steady::time_point until);

  std::unique_ptr<net::Stream> stream_;
  redisReader* reader_;
  std::string address_;
  std::chrono::milliseconds call_timeout_;
};

}  // namespace driftd::redis
