// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "redis/client.hpp"
#include "redis/topology.hpp"

namespace driftd::redis {

/// Idle connections by address. Thread-safe.
class Pool {
 public:
  std::unique_ptr<Client> take(const std::string& address);
  void put(std::unique_ptr<Client> client);  ///< a connection that failed must not be put back

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Client>> idle_;
};

/// The server that a call reads: the first address of the settings that answers, or the primary that the Sentinels
/// name. Lives for one call.
class Deployment {
 public:
  /// `pool` may be null; then every connection is new. `timeout` limits each connection and each answer. Throws the
  /// failure of the last address that was tried.
  Deployment(sdk::Call& call, const Settings& settings, Pool* pool, std::chrono::milliseconds timeout);
  ~Deployment();  ///< returns its connections to the pool, unless an exception is in flight
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  Client& client() { return *client_; }
  const Info& info() const { return info_; }  ///< INFO as of `sent_ns`
  std::int64_t sent_ns() const { return sent_ns_; }
  bool sentinel() const { return role_of(info_) == "sentinel"; }
  bool uses_sentinels() const { return settings_.sentinel.has_value(); }
  /// Returns true if the first address answered. If not, a Sentinel that answers is another one than usual.
  bool first() const { return first_; }
  const std::vector<SentinelView>& views() const { return views_; }
  /// Returns the failures of Sentinels that did not answer; empty if all did or there are none.
  const std::vector<sdk::Failure>& sentinel_failures() const { return sentinel_failures_; }

 private:
  std::unique_ptr<Client> open(const Address& address, const Login& login, Info* info);
  void connect_any();
  void follow();
  void query_sentinel(std::size_t from);
  void query_sentinel(Client& client, const Address& address);

  sdk::Call& call_;
  const Settings& settings_;
  Pool* pool_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<Client>> sentinels_;
  Info info_;
  std::int64_t sent_ns_ = 0;
  bool first_ = true;
  int failing_;
  std::vector<SentinelView> views_;
  std::vector<sdk::Failure> sentinel_failures_;
};

}  // namespace driftd::redis
