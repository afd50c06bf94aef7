// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <string>

namespace driftd::controller {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// What a queue is about: one resource of the kind that a controller has.
struct Key {
  std::string name_space;  ///< empty if the kind is not namespaced
  std::string name;
  auto operator<=>(const Key&) const = default;
};

/// `orders/redis-master`, or `redis-master` without a namespace.
inline std::string render(const Key& key) {
  return key.name_space.empty() ? key.name : key.name_space + "/" + key.name;
}

}  // namespace driftd::controller
