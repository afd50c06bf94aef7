// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <functional>

#include "driftd/provider.hpp"

namespace driftd::k8s {

/// Returns the failure that `of` throws; the test fails if it throws none.
inline sdk::Failure failure(const std::function<void()>& of) {
  try {
    of();
  } catch (const sdk::Failure& caught) {
    return caught;
  }
  ADD_FAILURE() << "nothing failed";
  return {DRIFTD_INTERNAL, ""};
}

}  // namespace driftd::k8s
