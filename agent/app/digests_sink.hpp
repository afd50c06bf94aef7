// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/digest.hpp"
#include "core/ports/sink.hpp"

namespace driftd::app {

/// `events: digests_only`: a sink that gets each event without its values (proto/digests.hpp).
std::unique_ptr<core::Sink> digests_only(std::unique_ptr<core::Sink> sink, const Key& key);

}  // namespace driftd::app
