// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::op {

/// What the API server answered, and the right that the operator lacks, if that is why.
inline std::string text_of(const sdk::Failure& failure) {
  std::string out = failure.what();
  if (!failure.right.empty()) out += "; the operator needs the right: " + failure.right;
  return out;
}

}  // namespace driftd::op
