// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "fuzz/foreign/foreign.hpp"

namespace driftd::fuzz {
namespace {

constexpr std::size_t kMi = 1u << 20;

constexpr std::array kTargets = {Target{"yaml", yaml, 40 * kMi},
                                 Target{"json", json, 32 * kMi},
                                 Target{"properties", properties, 16 * kMi},
                                 Target{"pem", pem, 16 * kMi},
                                 Target{"ssh", ssh, 16 * kMi},
                                 Target{"address", address, 16 * kMi},
                                 Target{"quantity", quantity, 16 * kMi},
                                 Target{"hcl", hcl, 32 * kMi},
                                 Target{"sql", sql, 32 * kMi},
                                 Target{"words", words, 32 * kMi},
                                 Target{"path", path, 16 * kMi},
                                 Target{"schema", schema, 16 * kMi},
                                 Target{"body", body, 40 * kMi},
                                 Target{"config", config, 40 * kMi},
                                 Target{"helm", helm, 64 * kMi},
                                 Target{"listing", listing, 64 * kMi},
                                 Target{"prism", prism, 16 * kMi},
                                 Target{"tfstate", tfstate, 64 * kMi},
                                 Target{"redis_acl", redis_acl, 16 * kMi},
                                 Target{"redis_info", redis_info, 16 * kMi},
                                 Target{"postgres", postgres, 32 * kMi},
                                 Target{"kafka", kafka, 16 * kMi}};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto found =
      std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& target) { return target.name == name; });
  return found == kTargets.end() ? nullptr : &*found;
}

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace driftd::fuzz
