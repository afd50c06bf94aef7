// SPDX-License-Identifier: Apache-2.0
// What the files of the API share for reading a request.
#pragma once

#include <string>
#include <vector>

#include "admin/api.hpp"

namespace driftd::admin {

/// Returns a query parameter; empty if it was not given.
std::string query_parameter(const Request& request, const std::string& name);
/// Returns `invalid`, naming the parameter, if one is not among `allowed`.
Status check_parameters(const Request& request, const std::vector<std::string>& allowed);
/// Returns the parts of a path between its slashes.
/// `/v1/drifts` has two; a slash at the end adds an empty one.
std::vector<std::string> segments(const std::string& path);
/// Returns the error of a method and path that the API does not have.
Error no_such_path(const Request& request);  ///< `not_found`

}  // namespace driftd::admin
