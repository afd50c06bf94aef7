// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/agent.hpp"
#include "support/kube.hpp"

namespace driftd::test {

/// Returns the path of a kubeconfig with the operator's token for the API server, or a relay before it, on this port.
std::string operator_kubeconfig(const KubeServer& kube, const TempDir& dir, int port);

/// A real operator as a process, with exactly the rights that the package ships.
class OperatorProcess {
 public:
  /// `options` are added to those that every test needs. Without `--kubeconfig` it talks to the API server directly.
  OperatorProcess(const KubeServer& kube, const TempDir& dir, const std::string& name,
                  std::vector<std::string> options = {});

  std::string log() const { return read_file(log_); }
  bool logged(const std::string& text) const { return log().find(text) != std::string::npos; }
  /// The value of a metric of one series; -1 if it is not there.
  double metric(const std::string& series) const;
  int probe(const std::string& path) const;  ///< the HTTP status
  int stop();                                ///< SIGTERM; its exit code, -1 if it still runs
  void kill() { child_.kill(); }
  void signal(int number) { child_.signal(number); }
  bool running() { return child_.running(); }
  int pid() const { return child_.pid(); }

 private:
  std::string get(const std::string& path, int& status) const;

  std::string log_;
  int port_;
  Child child_;
};

/// A cluster with the CRDs, the operator's namespace and rights, and a namespace `infrastructure`.
struct OperatorWorld : testing::Test {
  using json = nlohmann::json;

  KubeServer kube;
  TempDir dir;

  OperatorWorld();

  static std::string backends() { return "/apis/prism.io/v1alpha1/prismbackends"; }
  static std::string in(const std::string& space, const std::string& plural) {
    return "/api/v1/namespaces/" + space + "/" + plural;
  }
  /// The discovery RFC's sample object, under this name.
  json sample(const std::string& name = "redis-production") const;
  void make_service(const std::string& name, int port, const std::string& space = "infrastructure") const;
  json status(const std::string& backend) const;
  std::string phase(const std::string& backend) const { return status(backend).value("phase", ""); }
  std::string message(const std::string& backend) const;  ///< of its condition Ready
  /// A condition of its status as `True Found`; empty if there is none.
  std::string condition(const std::string& backend, const std::string& type) const;
  bool comes(const std::string& backend, const std::string& phase,
             std::chrono::milliseconds max_wait = std::chrono::seconds(20)) const {
    return eventually([&] { return this->phase(backend) == phase; }, max_wait);
  }
};

}  // namespace driftd::test
