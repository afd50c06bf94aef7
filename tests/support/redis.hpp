// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real redis-server on a free loopback port in a folder of its own, without persistence.
class RedisServer {
 public:
  /// `other`: not Debian's, but one that tests/servers/redis/fetch.sh knows by this name, `redis-6.2`.
  explicit RedisServer(std::vector<std::string> options = {}, const std::string& other = {});
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void stop() { child_.kill(); }
  void start();  ///< again on the same port; waits until it answers

  /// Runs one command as the default user; a list is joined by newlines, an error starts with its code.
  std::string command(const std::vector<std::string>& words) const;
  void signal(int number) const { child_.signal(number); }
  std::string file(const std::string& name) const { return dir_.file(name); }  ///< in its folder
  /// The grants of plugins/redis/README.md, literally, with this password.
  void grant_readme(const std::string& password) const;

 private:
  TempDir dir_;
  std::string program_;
  int port_;
  std::vector<std::string> options_;
  Child child_;
};

/// A real Sentinel of its own, quorum 1, that calls a primary lost after 1 s.
class RedisSentinel {
 public:
  RedisSentinel(const std::string& master, int primary_port, const std::string& other = {});
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string command(const std::vector<std::string>& words) const;
  /// The grants of the README for a Sentinel, literally, with this password.
  void grant_readme(const std::string& password) const;
  void stop() { child_.kill(); }

 private:
  TempDir dir_;
  int port_;
  Child child_;
};

/// One command as the default user at a port; see RedisServer::command.
std::string redis_command(int port, const std::vector<std::string>& words);

/// The ```language block under a `heading` of a provider's README.
std::string readme_block(const std::string& provider, const std::string& heading, const std::string& language);

/// The first ```language block under "## Rights" of a provider's README.
std::string readme_grants(const std::string& provider, const std::string& language);

}  // namespace driftd::test
