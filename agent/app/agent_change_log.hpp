// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/change_log.hpp"
#include "delivery/change_log_runner.hpp"

namespace driftd::app {

/// The change log of an agent, in the order in which its parts need each other.
struct ChangeLogParts {
  std::unique_ptr<core::ChangeLogStore> store;
  std::unique_ptr<core::ChangeLogReceiver> receiver;
  std::shared_ptr<delivery::ChangeLogRunner> runner;  ///< null: it is off
};

}  // namespace driftd::app
