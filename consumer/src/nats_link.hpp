// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nats/nats.h>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "driftd/consumer/pattern_runner.hpp"

namespace driftd::consumer {

struct FreeNats {
  void operator()(natsOptions* o) const { natsOptions_Destroy(o); }
  void operator()(natsConnection* c) const { natsConnection_Destroy(c); }
  void operator()(natsSubscription* s) const { natsSubscription_Destroy(s); }
  void operator()(natsMsg* m) const { natsMsg_Destroy(m); }
  void operator()(jsCtx* c) const { jsCtx_Destroy(c); }
  void operator()(jsStreamInfo* i) const { jsStreamInfo_Destroy(i); }
  void operator()(jsConsumerInfo* i) const { jsConsumerInfo_Destroy(i); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeNats>;

/// One connection to NATS for all subscriptions of a runner. It is made in the background and made again for ever. Any
/// thread.
class NatsLink {
 public:
  /// `invalid` for settings that nats.c refuses. A server that cannot be reached is no failure.
  static Result<std::unique_ptr<NatsLink>> open(const NatsAccess& access, const std::string& name);
  ~NatsLink();
  NatsLink(const NatsLink&) = delete;
  NatsLink& operator=(const NatsLink&) = delete;

  natsConnection* connection() const { return connection_.get(); }
  jsCtx* jetstream() const { return jetstream_.get(); }
  bool connected() const;
  /// Grows with each connection: what the server was asked on an earlier one, it has forgotten.
  std::uint64_t connections() const { return *connections_; }
  const NatsAccess& access() const { return access_; }
  void close();  ///< ends every wait on the connection

 private:
  explicit NatsLink(const NatsAccess& access);
  NatsAccess access_;
  /// Never freed: nats.c may call back after the connection was destroyed.
  std::atomic<std::uint64_t>* connections_;
  Owned<natsConnection> connection_;
  Owned<jsCtx> jetstream_;
};

/// The servers without user names and passwords, for messages.
std::string shown(const std::vector<std::string>& servers);

}  // namespace driftd::consumer
