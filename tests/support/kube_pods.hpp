// SPDX-License-Identifier: Apache-2.0
// What makes processes of Deployments in a test's cluster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/kube.hpp"

namespace driftd::test {

/// A real kube-controller-manager with the controllers of Deployments, ReplicaSets and the garbage collector.
class KubeControllers {
 public:
  KubeControllers(const KubeServer& kube, const TempDir& dir);
  std::string log() const { return read_file(log_); }

 private:
  std::string log_;
  Child child_;
};

/// A kubelet of our own for tests (test_kubelet.py): it runs the containers of all Pods as processes of this machine.
class TestKubelet {
 public:
  /// `images`: the command of each image. `services`: names that containers resolve to 127.0.0.1.
  TestKubelet(const KubeServer& kube, const TempDir& dir, const std::map<std::string, std::vector<std::string>>& images,
              const std::vector<std::string>& services = {});
  /// The output of this container of all Pods whose names begin with `pod`.
  std::string output(const std::string& space, const std::string& pod, const std::string& container) const;
  std::string log() const { return read_file(dir_.file("kubelet.log")); }

 private:
  const TempDir& dir_;
  Child child_;
};

}  // namespace driftd::test
