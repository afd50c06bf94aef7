// SPDX-License-Identifier: Apache-2.0
// What the files of the API share when they read a request.
#pragma once

#include <string>
#include <vector>

#include "admin/api.hpp"

namespace driftd::admin {

/// A query parameter; empty when it was not given.
std::string query(const Request& request, const std::string& name);
/// `invalid` names a query parameter that is not among `allowed`.
Status check_parameters(const Request& request, const std::vector<std::string>& allowed);
/// The parts of a path between its slashes.
std::vector<std::string> segments(const std::string& path);
Error no_such_path(const Request& request);

}  // namespace driftd::admin
