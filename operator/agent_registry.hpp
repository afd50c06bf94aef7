// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "operator/registry.hpp"

namespace driftd::op {

/// Where driftd's agent serves gRPC, and who asks.
struct AgentAccess {
  std::string target;         ///< `unix:/run/driftd/grpc.sock`, or `host:port`, which is TLS
  std::string ca, cert, key;  ///< PEM files; empty: the system's authorities, no certificate
  std::string token_file;     ///< file with a bearer token, read for each call; empty: none
};

/// Follows the agent's registry: reads it whole, then asks again for each backend that an event of the agent names. No
/// request is made while nothing happens. A lost connection is made again with backoff, and everything is read again.
class AgentRegistry final : public Registry {
 public:
  /// `changed` is called with each backend whose answer is another one, on the thread of run(). `all_changed`: the
  /// agent is reached, or not reached any more.
  struct Handlers {
    std::function<void(const std::string& backend)> changed;
    std::function<void()> all_changed;
  };
  AgentRegistry(AgentAccess access, Handlers handlers);
  ~AgentRegistry() override;

  void run(std::stop_token stop);  ///< until `stop` is requested
  RegistryAnswer find(const std::string& backend) const override;
  void ask_again(const std::string& backend) override;
  bool is_connected() const;
  std::string fault() const;  ///< why it is not; empty: it is

 private:
  class Link;
  void follow(std::stop_token stop);
  /// Asks for one backend. Returns true if the answer is another one.
  bool ask(const std::string& backend);
  void set_fault(std::string why);

  const std::unique_ptr<Link> link_;
  const Handlers handlers_;
  std::mutex asking_;         ///< held from a request until its answer is noted: a late answer replaces no newer one
  mutable std::mutex mutex_;  ///< guards the members below
  std::map<std::string, Registered> backends_;
  bool read_ = false;  ///< the whole registry, over the present connection
  std::string fault_;
  std::chrono::steady_clock::time_point lost_at_{};  ///< when fault_ was set first
  bool is_away_ = false;                             ///< as the handlers know it
};

}  // namespace driftd::op
