// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/event/event.hpp"

namespace driftd::delivery {

/// Returns a receiver's text shortened and escaped, fit for a log, a database and an event.
std::string brief(const std::string& error);

/// Returns `detail` and which event it is about, in the same form.
std::string about(const core::StoredEvent& event, const std::string& detail);

}  // namespace driftd::delivery
