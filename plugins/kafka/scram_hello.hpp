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

/// Gets the salts of SCRAM credentials from brokers without any right and without a password: a client that starts a
/// login gets salt and iterations before it has proved anything (RFC 5802), and then disconnects. Each new password
/// gets a new salt, so another salt means a changed password. Remembers the last answer for each name. Thread-safe.
class ScramHellos {
 public:
  explicit ScramHellos(const Settings& settings) : settings_(settings) {}

  /// Returns the last answer about `of`. Asks again if `may_ask` and the interval of the settings has passed since the
  /// last hello. `brokers` are the addresses to ask, canonical `host:port`, unless the settings name servers. Throws
  /// only for what concerns the whole call: CANCELLED, its DEADLINE, INVALID settings, INTERNAL.
  ScramHelloResult result_for(sdk::Call& call, const ScramName& of, const std::vector<std::string>& brokers,
                              bool may_ask);
  /// Forgets all answers: another cluster is behind the addresses, and they may come from either.
  void forget();

 private:
  struct Known {
    std::optional<std::int64_t> sent_ns;  ///< monotonic time of the last hello that a broker may have counted as a
                                          ///< login
    ScramHelloResult answer;              ///< the last one
  };
  /// Returns true if the caller shall send the hello; nobody else does until the interval is over. Returns false if it
  /// is too early or another call is sending it.
  bool claim_turn(const ScramName& of, std::int64_t now_ns);

  const Settings& settings_;          ///< must outlive it
  std::mutex mutex_;                  ///< guards `known_`; never locked while a broker is asked
  std::map<ScramName, Known> known_;  ///< names that were asked about
};

}  // namespace driftd::kafka
