// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "kafka/model.hpp"
#include "kafka/settings.hpp"

namespace driftd::kafka {

/// Asks brokers for the salts of SCRAM credentials without any right and without a password: whoever starts a login is
/// told salt and iterations before he has proved anything (RFC 5802), and hangs up. A salt is made anew with each
/// password, so another salt is a password that was set anew. Remembers the last answer for each name. Any thread.
class ScramHellos {
 public:
  explicit ScramHellos(const Settings& settings) : settings_(settings) {}

  /// The last answer about `of`: of now when the settings' interval has passed since its last hello and `may_ask`, else
  /// of then. `brokers`: where hellos are said, canonical `host:port`, unless the settings name servers. Throws
  /// sdk::Failure only for what concerns the whole call: CANCELLED, its DEADLINE, INVALID settings, INTERNAL.
  ScramHelloResult result_for(sdk::Call& call, const ScramName& of, const std::vector<std::string>& brokers,
                              bool may_ask);
  /// Another cluster came to stand behind the addresses: what was heard may be of either.
  void forget();

 private:
  struct Known {
    std::optional<std::int64_t> sent_ns;  ///< monotonic, of the last hello that a broker may have counted
    ScramHelloResult answer;
  };
  /// False: not yet again, or somebody else is at it. True: the caller says it, and nobody else until the interval is
  /// over.
  bool claim_turn(const ScramName& of, std::int64_t now_ns);

  const Settings& settings_;
  std::mutex mutex_;
  std::map<ScramName, Known> known_;
};

}  // namespace driftd::kafka
