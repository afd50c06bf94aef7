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

/// Idle connections by address. Any thread.
class Pool {
 public:
  std::unique_ptr<Client> take(const std::string& address);
  void put(std::unique_ptr<Client> client);  ///< only whole ones: a connection that failed is not put back

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Client>> idle_;
};

/// The server that a call talks to, found by the settings: the first address that answers, or the primary that
/// Sentinels name. Lives for one call.
class Deployment {
 public:
  /// `pool` may be null: then every connection is new. `timeout`: for one connection and for one answer. Throws the
  /// failure of the last address that was tried.
  Deployment(sdk::Call& call, const Settings& settings, Pool* pool, std::chrono::milliseconds timeout);
  ~Deployment();  ///< gives its connections back, unless a failure is on its way
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  Client& client() { return *client_; }
  const Info& info() const { return info_; }  ///< INFO all, as of `sent_ns`
  std::int64_t sent_ns() const { return sent_ns_; }
  bool sentinel() const { return role_of(info_) == "sentinel"; }
  bool uses_sentinels() const { return settings_.sentinel.has_value(); }
  /// The first of the addresses answered. At a Sentinel that is not so, it is another Sentinel than usual.
  bool first() const { return first_; }
  const std::vector<SentinelView>& views() const { return views_; }
  /// Why not every Sentinel was heard; empty: all were, or there is none.
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
