// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real OpenTofu (tests/servers/tofu, built once) with its configuration in a temporary folder. The state is there,
/// too, unless a backend is configured. There is no network, so the only resource type is `terraform_data`. One thread.
class Tofu {
 public:
  explicit Tofu(std::map<std::string, std::string> env = {});
  /// Writes main.tf and runs `tofu init`. `backend` is the content of `terraform {}`, for example `backend "http" { …
  /// }`.
  void configure(const std::string& resources, const std::string& backend = {});
  /// Runs `tofu WORDS…` and returns its output. Throws with the output if it fails.
  std::string run(const std::vector<std::string>& words) const;
  void apply() const { run({"apply", "-auto-approve"}); }
  /// Returns the path of the state of a workspace. Empty means the default workspace.
  std::string state_file(const std::string& workspace = {}) const;
  const TempDir& folder() const { return dir_; }

 private:
  TempDir dir_;
  std::map<std::string, std::string> env_;
};

/// Runs tests/servers/state/server.py on a free loopback port: an http backend, Consul's KV and HCP Terraform's API.
class StateServer {
 public:
  StateServer();
  std::string url(const std::string& path) const { return "http://" + address() + path; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  /// Changes how it answers from now on; see server.py.
  void control(const nlohmann::json& how) const;
  void stop() { child_.kill(); }
  void pause() const { child_.signal(SIGSTOP); }
  void resume() const { child_.signal(SIGCONT); }
  /// Returns `METHOD /path STATUS` of each request since the last call.
  std::vector<std::string> requests();

 private:
  TempDir dir_;
  int port_;
  std::size_t seen_ = 0;
  Child child_;
};

/// Runs tests/servers/state/front.py, a proxy on a free loopback port in front of a server on another port. It adds
/// TLS, refusals and cut bodies.
class Front {
 public:
  explicit Front(int server_port, const nlohmann::json& how = nlohmann::json::object());
  int port() const { return port_; }
  /// Changes its behaviour from now on, for new and for open connections; see front.py.
  void behave(const nlohmann::json& how) const;

 private:
  TempDir dir_;
  int port_;
  Child child_;
};

/// Runs moto's S3 and IAM (tests/servers/moto) on a free loopback port, with the bucket `states`, a user who may do
/// everything and a stranger who may read nothing.
class Moto {
 public:
  /// `strict`: signatures and rights are checked. (moto accepts the signatures of libcurl, but not those of OpenTofu.)
  explicit Moto(bool strict);
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  void stop() { child_.kill(); }
  void pause() const { child_.signal(SIGSTOP); }
  void resume() const { child_.signal(SIGCONT); }
  void allow_stranger() const { child_.signal(SIGUSR1); }  ///< grants s3:GetObject and s3:ListBucket a moment later
  void deny_stranger() const { child_.signal(SIGUSR2); }
  /// Returns `METHOD /path STATUS` of each request since the last call.
  std::vector<std::string> requests();
  const nlohmann::json& keys() const { return keys_; }  ///< {"writer": {"access", "secret"}, "stranger": …}

 private:
  TempDir dir_;
  int port_;
  std::size_t seen_ = 0;
  Child child_;
  nlohmann::json keys_;
};

}  // namespace driftd::test
