// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"
#include "core/judge/stages.hpp"

namespace driftd::core {

std::string new_drift_id(const ReconcileInput& input, const StoredResource& stored, const GroupKey& key) {
  const auto [cls, against, action] = key;
  const Digest id = digest(0, {input.backend_uid, render(stored.id), render(cls), render(against), render(action),
                               std::to_string(input.now_ns), std::to_string(stored.revision)});
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(id.low >> shift) & 15];
  return "d-" + hex;
}

}  // namespace driftd::core
