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

/// Runs a real `driftd run` with a config in a temporary folder, and asks it through the real CLI.
class Agent {
 public:
  /// `body` is the config without `agent:` and `admin:`. `env` is added to the environment, for example for secrets.
  Agent(const TempDir& dir, std::string body, std::map<std::string, std::string> env = {},
        std::vector<std::string> plugin_dirs = {build("providers")});

  /// `wrapper` is a command that executes the arguments after its own, such as `prlimit --nofile=64`. Empty: none.
  void start(std::vector<std::string> wrapper = {});
  /// Sends SIGTERM and waits up to 15 s. Returns the exit code, or -1 if the agent still runs.
  int stop();
  void kill() { child_.kill(); }
  void signal(int number) { child_.signal(number); }
  bool running() { return child_.running(); }
  pid_t pid() const { return child_.pid(); }

  /// Runs `driftd WORDS… -o json` and parses the output. Discarded (`is_discarded()`) if it is not valid JSON.
  nlohmann::json ask(std::vector<std::string> words) const;
  /// Runs `driftd WORDS…` on this agent's socket.
  Output cli(std::vector<std::string> words) const;
  /// Runs a list command (`drifts`, `backends` …) and returns the first array in its JSON. Empty if there is none.
  std::vector<nlohmann::json> rows(std::vector<std::string> words) const;
  /// Returns the row of `driftd backends` for this backend.
  Found backend(const std::string& name) const;
  /// Returns true if every kind of each of these backends has its baseline.
  bool established(const std::vector<std::string>& backends) const;
  std::string log() const { return read_file(log_); }
  const std::string& socket() const { return socket_; }
  const std::string& config() const { return config_; }
  const std::string& data_dir() const { return data_; }
  int admin_port() const { return port_; }

  static std::string binary();
  static std::string build(const std::string& path);  ///< the path of `providers/redis.so` … in the build folder

 private:
  std::string config_, socket_, data_, log_;
  int port_;
  std::map<std::string, std::string> env_;
  Child child_;
};

}  // namespace driftd::test
