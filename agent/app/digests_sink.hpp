// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "store/keys.hpp"

namespace driftd::app {

/// Wraps a sink for `events: digests_only`: it gets each event without its values (proto/digests.hpp). The digests are
/// made with the key of the event's time, also when it is sent after a rotation.
std::unique_ptr<core::Sink> digests_only(std::unique_ptr<core::Sink> sink, const store::InstallationKey& key);

}  // namespace driftd::app
