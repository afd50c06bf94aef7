// SPDX-License-Identifier: Apache-2.0
// Reads what a plugin needs of a JSON document without building a tree of it. The trees of nlohmann::json allocate
// memory in their destructor, and a destructor that cannot do that ends the process: with no memory left, the worker
// would die instead of answering an error. It is also cheaper: an event may have megabytes that no message shows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syslog_sink {

// Texts and integers by their path, such as `data.changes.0.path`. Of an array `data.changes`, the number of its items
// is under `data.changes[]`.
using Fields = std::map<std::string, std::string, std::less<>>;

// Returns true if a member or item of this name is to be kept.
using Wanted = std::function<bool(std::string_view name)>;

// Returns empty if the text is not JSON, or nested more than 256 levels deep.
std::optional<Fields> read_fields(std::string_view json, const Wanted& wanted);

// Returns a field, or `otherwise` if there is none.
std::string get(const Fields& fields, std::string_view path, std::string_view otherwise = {});

}  // namespace syslog_sink
