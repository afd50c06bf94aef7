// SPDX-License-Identifier: Apache-2.0
// Well-formed frames of a worker. Hostile workers, the fuzzer and the corpus test mutate them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ipc/messages.hpp"
#include "ipc/wire.hpp"

namespace driftd::fuzz {

ipc::LoadAnswer loaded();  ///< of a provider named `hostile` with the kind `thing`
core::Observation observation(const std::string& id);
std::string answer(const std::string& body = {});  ///< returns the payload of a result frame with code ok

/// Returns the frames that a worker sends during a call: each type and each kind of result.
std::vector<ipc::Frame> all_frames(std::uint64_t call);

using Random = std::minstd_rand;
/// Returns `bytes` with some of them changed, removed, repeated or added.
std::string mutated(std::string bytes, Random& random);
/// Returns a frame that the protocol allows, with extreme contents: long and unusual texts, numbers that are not
/// numbers.
ipc::Frame odd_frame(std::uint64_t call, Random& random);
/// Returns a frame that may break the protocol: a real one, or one with another type or call, or with a mutated or
/// random payload.
ipc::Frame any_frame(std::uint64_t call, Random& random);

}  // namespace driftd::fuzz
