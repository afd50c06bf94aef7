// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "store/keys.hpp"

namespace driftd::app {

/// `events: digests_only`: a sink that gets each event without its values (proto/digests.hpp).
/// An event has the digests of the key of its time, also when it is sent after a rotation.
std::unique_ptr<core::Sink> digests_only(std::unique_ptr<core::Sink> sink, const store::InstallationKey& key);

}  // namespace driftd::app
