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

/// One API server that all tests of a process share, and the provider that reads it.
class Cluster : public ::testing::Test {
 protected:
  Cluster() {  // not in the set-up of the suite, for gtest reports a failure there as a skipped test
    if (kube_ == nullptr) kube_ = std::make_unique<KubeServer>();
  }
  static KubeServer& kube() { return *kube_; }

  /// Something to do while a watch runs, and a condition that what the watch collected must then fulfil.
  struct Step {
    std::function<void()> act;
    std::function<bool(const Collected&)> seen;
  };
  /// Runs the steps one after the other during one watch and returns what it collected. The test fails if a step's
  /// condition is not fulfilled within `max`.
  static Collected watch(ProviderProbe& probe, const std::string& cursor, std::vector<Step> steps,
                         std::chrono::milliseconds max = std::chrono::seconds(60));

  static ProviderProbe probe(const json& settings) { return ProviderProbe("providers/k8s.so", settings); }
  /// Creates a namespace that no other test uses and returns its name.
  static std::string fresh_namespace();
  /// The settings, with members replaced or added.
  static json with(json settings, const json& more) {
    settings.update(more);
    return settings;
  }
  /// The API's path of the Secrets of a namespace.
  static std::string secrets(const std::string& space) { return "/api/v1/namespaces/" + space + "/secrets"; }
  /// A text of the object's metadata.
  static std::string text(const json& object, const std::string& member) { return object.at("metadata").at(member); }
  /// The first record of that kind and id in that version. Null if there is none.
  static const sdk::Record* at_version(const Collected& got, const std::string& kind, const std::string& id,
                                       const std::string& version);
  /// Status, number of records and diagnostics, for the message of a failed assertion.
  static std::string render(const Collected& got);

 private:
  static inline std::unique_ptr<KubeServer> kube_;
};

}  // namespace driftd::test
