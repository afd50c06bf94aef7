// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kafka/settings.hpp"
#include "kafka/wire.hpp"
#include "net/stream.hpp"

namespace driftd::kafka {

/// A connection to one broker, for requests that librdkafka does not have, with one time limit for everything (the
/// `connect` time-out of the settings, or `limit`). Throws as net::Stream. Not thread-safe.
class BrokerConnection {
 public:
  /// `endpoint` is canonical: `host:port`, `[v6]:port`. `doing` begins the error texts: `SCRAM hello`.
  BrokerConnection(sdk::Call& call, const Settings& settings, const std::string& endpoint, std::string doing);
  BrokerConnection(sdk::Call& call, const Settings& settings, const std::string& endpoint, std::string doing,
                   std::chrono::milliseconds limit);
  void send(const std::string& request) { stream_->write(call_, request, until_); }
  /// Returns one answer without its length. Throws CORRUPT if it has more than `max_bytes`.
  std::string answer(std::size_t max_bytes = kMaxAnswer);

 private:
  std::string read(std::size_t size);

  sdk::Call& call_;
  const std::string doing_;
  const net::Steady::time_point until_;
  std::unique_ptr<net::Stream> stream_;
};

/// Returns a random text for the first message of a SCRAM login.
std::string make_nonce();

}  // namespace driftd::kafka
