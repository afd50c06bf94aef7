// SPDX-License-Identifier: Apache-2.0
#include "kafka/broker_connection.hpp"

#include <openssl/rand.h>

namespace driftd::kafka {

BrokerConnection::BrokerConnection(sdk::Call& call, const Settings& settings, const std::string& endpoint,
                                   std::string doing)
    : BrokerConnection(call, settings, endpoint, std::move(doing), settings.connect) {}

BrokerConnection::BrokerConnection(sdk::Call& call, const Settings& settings, const std::string& endpoint,
                                   std::string doing, std::chrono::milliseconds limit)
    : call_(call),
      doing_(std::move(doing)),
      until_(net::Steady::now() + limit) {
  const auto colon = endpoint.rfind(':');
  const std::string host = endpoint.starts_with('[') ? endpoint.substr(1, colon - 2) : endpoint.substr(0, colon);
  const net::Peer peer{endpoint, host, std::stoi(endpoint.substr(colon + 1)), {}};
  stream_ = net::Stream::open(call, peer, settings.tls.on ? &settings.tls : nullptr, until_);
}

std::string BrokerConnection::answer(std::size_t max_bytes) {
  return read(answer_size(doing_, read(kFrameHead), max_bytes));
}

std::string BrokerConnection::read(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t have = 0; have < size;) have += stream_->read(call_, out.data() + have, size - have, until_);
  return out;
}

std::string make_nonce() {
  unsigned char bytes[18];
  if (RAND_bytes(bytes, sizeof bytes) != 1) throw sdk::Failure(DRIFTD_INTERNAL, "no randomness for a nonce");
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char one : bytes) out += {kHex[one >> 4], kHex[one & 15]};
  return out;
}

}  // namespace driftd::kafka
