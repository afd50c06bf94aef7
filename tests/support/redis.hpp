// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real redis-server on a free loopback port in a folder of its own, without persistence.
class RedisServer {
 public:
  /// A first option without `--` is a configuration file. `release` is a name like `redis-6.2` that
  /// tests/servers/redis/fetch.sh knows. Empty: Debian's redis-server.
  explicit RedisServer(std::vector<std::string> options = {}, const std::string& release = {});
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void stop() { child_.kill(); }
  void start();  ///< starts it again on the same port and waits until it answers

  /// Runs one command as the default user and returns the reply. A list is joined by newlines, an error begins with its
  /// code. Empty if there is no reply.
  std::string command(const std::vector<std::string>& words) const;
  void signal(int number) const { child_.signal(number); }
  std::string file(const std::string& name) const { return dir_.file(name); }  ///< a path in its folder
  /// Runs the grants of plugins/redis/README.md unchanged, with this password.
  void grant_readme(const std::string& password) const;

 private:
  TempDir dir_;
  std::string program_;
  int port_;
  std::vector<std::string> options_;
  Child child_;
};

/// A real Sentinel with a quorum of 1. It takes a primary for down after 1 s.
class RedisSentinel {
 public:
  RedisSentinel(const std::string& master, int primary_port, const std::string& release = {});
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string command(const std::vector<std::string>& words) const;
  /// Runs the README's grants for a Sentinel unchanged, with this password.
  void grant_readme(const std::string& password) const;
  void stop() { child_.kill(); }

 private:
  TempDir dir_;
  int port_;
  Child child_;
};

/// Runs one command as the default user at a port, like RedisServer::command.
std::string redis_command(int port, const std::vector<std::string>& words);

/// Returns the first ```language block under a `heading` of a provider's README. Throws if there is none.
std::string readme_block(const std::string& provider, const std::string& heading, const std::string& language);

/// Returns the first ```language block under "## Rights" of a provider's README.
std::string readme_grants(const std::string& provider, const std::string& language);

}  // namespace driftd::test
