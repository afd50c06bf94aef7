// SPDX-License-Identifier: Apache-2.0
// What a worker says, well-formed: the material that hostile workers, the fuzzer and its corpus mutate.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ipc/messages.hpp"

namespace driftd::fuzz {

ipc::LoadAnswer loaded();  ///< of a provider `hostile` with the kind `thing`
core::Observation observation(const std::string& id);
std::string answer(const std::string& body = {});  ///< payload of a result with code ok

/// One frame of each type that a worker sends, for the call.
std::vector<ipc::Frame> all_frames(std::uint64_t call);

using Random = std::minstd_rand;
/// Changes, cuts, doubles or grows some bytes.
std::string mutated(std::string bytes, Random& random);
/// A frame that the protocol allows, with contents at its edges: long and odd texts, numbers that are none.
ipc::Frame odd_frame(std::uint64_t call, Random& random);
/// A frame with a valid checksum mostly: a real one, one of another type or call, one with mutated or random payload.
ipc::Frame any_frame(std::uint64_t call, Random& random);

}  // namespace driftd::fuzz
