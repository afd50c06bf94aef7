// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real OpenTofu (tests/servers/tofu, built once) with a configuration and, unless a backend says otherwise, a state
/// in a temporary folder. Offline: only `terraform_data`. One thread.
class Tofu {
 public:
  explicit Tofu(std::map<std::string, std::string> env = {});
  /// Writes main.tf and initialises it. `backend`: lines of `terraform {}`, `backend "http" { … }` for example.
  void configure(const std::string& resources, const std::string& backend = {});
  /// `tofu <words>`; throws with its output when it fails.
  std::string run(const std::vector<std::string>& words) const;
  void apply() const { run({"apply", "-auto-approve"}); }
  /// Of the default workspace, or `terraform.tfstate.d/<workspace>`.
  std::string state_file(const std::string& workspace = {}) const;
  const TempDir& folder() const { return dir_; }

 private:
  TempDir dir_;
  std::map<std::string, std::string> env_;
};

/// tests/servers/state/server.py on a free loopback port: an http backend, Consul's KV and HCP Terraform's API.
class StateServer {
 public:
  StateServer();
  std::string url(const std::string& path) const { return "http://" + address() + path; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  void control(const nlohmann::json& how) const;
  void stop() { child_.kill(); }
  void pause() const { child_.signal(SIGSTOP); }
  void resume() const { child_.signal(SIGCONT); }
  /// `METHOD /path STATUS` of each request since the last call.
  std::vector<std::string> requests();

 private:
  TempDir dir_;
  int port_;
  std::size_t seen_ = 0;
  Child child_;
};

/// tests/servers/state/front.py on a free loopback port, before a server on another one: TLS, refusals, cut bodies.
class Front {
 public:
  explicit Front(int server_port, const nlohmann::json& how = nlohmann::json::object());
  int port() const { return port_; }
  /// From now on, for whoever connects and whoever is connected; see front.py.
  void behave(const nlohmann::json& how) const;

 private:
  TempDir dir_;
  int port_;
  Child child_;
};

/// moto's S3 and IAM (tests/servers/moto) on a free loopback port: bucket `states`, a user that may do everything and
/// one that may read nothing.
class Moto {
 public:
  /// `strict`: signatures and rights are checked (moto's check takes libcurl's signatures, but not OpenTofu's).
  explicit Moto(bool strict);
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  void stop() { child_.kill(); }
  void pause() const { child_.signal(SIGSTOP); }
  void resume() const { child_.signal(SIGCONT); }
  void allow_stranger() const { child_.signal(SIGUSR1); }  ///< s3:GetObject and s3:ListBucket, from soon on
  void deny_stranger() const { child_.signal(SIGUSR2); }
  const nlohmann::json& keys() const { return keys_; }  ///< {"writer": {"access", "secret"}, "stranger": …}

 private:
  TempDir dir_;
  int port_;
  Child child_;
  nlohmann::json keys_;
};

}  // namespace driftd::test
