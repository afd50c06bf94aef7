// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>
#include <utility>

#include "cluster.hpp"

namespace driftd::test {

struct K8sFailure : Cluster {
  static json only_secrets(const std::string& space) {
    return with(kube().settings({space}), {{"include", {"secret"}}});
  }
  /// Creates the Secrets s-0, s-1 …, each with `size` random characters, which no compression makes much smaller.
  static void fill(const std::string& space, int count, std::size_t size = 10) {
    std::mt19937 random{7};
    for (int i = 0; i < count; ++i) {
      std::string value;
      while (value.size() < size) value += static_cast<char>('0' + random() % 75);
      kube().create_secret(space, "s-" + std::to_string(i), {{"value", value}});
    }
  }
  static json rule(const std::string& resource, json verbs) {
    return {{"apiGroups", {""}}, {"resources", {resource}}, {"verbs", std::move(verbs)}};
  }
};

}  // namespace driftd::test
