// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "driftd/sdk/call.hpp"

namespace driftd::terraform {

/// A state file as it was at one moment.
struct Snapshot {
  std::string text;
  std::string stamp;          ///< inode, size and modification time: equal stamps, equal files
  std::int64_t read_ns = 0;   ///< wall clock when the read began
  std::int64_t lock_age_s = -1;  ///< age of a `.terraform.tfstate.lock.info` beside it; -1: not locked
};

/// Reads the file whole: opened once, and read again when it changed under the read. UNAVAILABLE when it is not there
/// or not readable, DENIED when a right is missing, BUDGET above 512 MiB.
Snapshot read_state(sdk::Call& call, const std::string& path);
/// Only the stamp; empty when there is no file.
std::string stamp_of(const std::string& path);

/// Blocks on inotify over the file's folder (Terraform replaces the file by rename) and runs `changed` once it
/// watches and after each change of the file, until the call is cancelled.
void watch_file(sdk::Call& call, const std::string& path, const std::function<void()>& changed);

}  // namespace driftd::terraform
