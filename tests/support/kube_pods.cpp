// SPDX-License-Identifier: Apache-2.0
#include "support/kube_pods.hpp"

#include <filesystem>

namespace driftd::test {

KubeControllers::KubeControllers(const KubeServer& kube, const TempDir& dir)
    : log_(dir.file("controller-manager.log")),
      child_({KubeServer::tools() + "/kube-controller-manager", "--kubeconfig", kube.kubeconfig(),
              "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", std::to_string(free_port()),
              "--cert-dir", dir.file("controller-manager"), "--controllers",
              "deployment-controller,replicaset-controller,garbage-collector-controller"},
             {log_, {}, {}}) {}

TestKubelet::TestKubelet(const KubeServer& kube, const TempDir& dir,
                         const std::map<std::string, std::vector<std::string>>& images,
                         const std::vector<std::string>& services)
    : dir_(dir) {
  std::filesystem::create_directories(dir.file("pods"));
  std::string hosts = "127.0.0.1 localhost";
  for (const auto& name : services) hosts += " " + name;
  child_ = Child(
      {"python3", DRIFTD_SOURCE_DIR "/tests/support/test_kubelet.py", kube.server(), kube.ca_file(), kube.file("token"),
       dir.file("pods"), dir.write("hosts", hosts + "\n"), dir.write("images.json", nlohmann::json(images).dump())},
      {dir.file("kubelet.log"), {}, {}});
}

std::string TestKubelet::output(const std::string& space, const std::string& pod, const std::string& container) const {
  std::string out;
  for (const auto& file : std::filesystem::directory_iterator(dir_.file("pods"))) {
    const std::string name = file.path().filename();
    if (name.starts_with(space + "_" + pod) && name.ends_with("_" + container + ".log")) out += read_file(file.path());
  }
  return out;
}

}  // namespace driftd::test
