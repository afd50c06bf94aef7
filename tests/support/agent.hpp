// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// An answer of the agent. Reading it throws if the agent gave none.
struct Found : std::optional<nlohmann::json> {
  using optional::optional;
  const nlohmann::json* operator->() const { return &value(); }
  const nlohmann::json& operator*() const { return value(); }
};

/// A real `driftd run` on a config in a temporary folder, asked through the real CLI.
class Agent {
 public:
  /// `body` is the config without `agent:` and `admin:`; `env` holds its secrets.
  Agent(const TempDir& dir, std::string body, std::map<std::string, std::string> env = {},
        std::vector<std::string> plugin_dirs = {build("providers")});

  /// `under`: a command that ends by executing its further arguments.
  void start(std::vector<std::string> under = {});
  /// SIGTERM and wait; the exit code.
  int stop();
  void kill() { child_.kill(); }
  void signal(int number) { child_.signal(number); }
  bool running() { return child_.running(); }
  pid_t pid() const { return child_.pid(); }

  /// `driftd WORDS… -o json`, parsed; null when it failed.
  nlohmann::json ask(std::vector<std::string> words) const;
  Output cli(std::vector<std::string> words) const;
  /// Rows of a list command (`drifts`, `backends` …), whatever wraps them.
  std::vector<nlohmann::json> rows(std::vector<std::string> words) const;
  Found backend(const std::string& name) const;
  /// Every kind of every backend named has its baseline.
  bool established(const std::vector<std::string>& backends) const;
  std::string log() const { return read_file(log_); }
  const std::string& socket() const { return socket_; }
  const std::string& config() const { return config_; }
  const std::string& data_dir() const { return data_; }
  int admin_port() const { return port_; }

  static std::string binary();
  static std::string build(const std::string& path);  ///< under the build folder: `providers/redis.so`

 private:
  std::string config_, socket_, data_, log_;
  int port_;
  std::map<std::string, std::string> env_;
  Child child_;
};

}  // namespace driftd::test
