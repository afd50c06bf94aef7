// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/kube.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {

using nlohmann::json;

/// One API server for all tests of a process, and the provider on it.
class Cluster : public ::testing::Test {
 protected:
  Cluster() {  // not in the set-up of the suite: a failure there is told as a skipped test
    if (kube_ == nullptr) kube_ = std::make_unique<KubeServer>();
  }
  static KubeServer& kube() { return *kube_; }

  /// Something to do while a watch runs, and what must then have been seen.
  struct Step {
    std::function<void()> act;
    std::function<bool(const Collected&)> seen;
  };
  /// Runs the steps one after the other inside of one watch; what was collected. Fails when the last was not reached.
  static Collected watch(ProviderProbe& probe, const std::string& cursor, std::vector<Step> steps,
                         std::chrono::milliseconds most = std::chrono::seconds(60));

  static ProviderProbe probe(const json& settings) { return ProviderProbe("providers/k8s.so", settings); }
  static std::string fresh_namespace();
  static json with(json settings, const json& more) {
    settings.update(more);
    return settings;
  }
  static std::string secrets(const std::string& space) { return "/api/v1/namespaces/" + space + "/secrets"; }
  static std::string text(const json& object, const std::string& member) { return object.at("metadata").at(member); }
  /// A record of that kind and id in that version.
  static const sdk::Record* at_version(const Collected& got, const std::string& kind, const std::string& id,
                                       const std::string& version);
  static std::string shown(const Collected& got);

 private:
  static inline std::unique_ptr<KubeServer> kube_;
};

}  // namespace driftd::test
