// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "postgres/reader.hpp"

namespace driftd::postgres {

/// Returns what a reload would put in force: lines of the configuration files and files of access rules that somebody
/// edited and did not load, each as a name without its value. What is said of `setting` itself is left out. Throws
/// common::CannotSet, with the right to grant, if that cannot be told.
std::vector<std::string> staged_edits(sdk::Call& call, Client& client, Reader& reader, const std::string& setting);

}  // namespace driftd::postgres
