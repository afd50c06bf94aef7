// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::k8s {

/// What becomes of a field of the API that is not compared like any other.
enum class Handling {
  dropped,    ///< never compared
  filled_in,  ///< `computed` in the schema: the first value is filled in silently, a later change is a drift
  injected,   ///< dropped while an annotation says that a controller injects it (kInjectors)
  owned,      ///< unread while an autoscaler owns it; who that is, is compared
  hollow,     ///< dropped while it is `{}`, which means the same as nothing there
};

/// A field that is an exception to the rule that every field is compared, with the reason.
struct Exception {
  std::string_view kinds;   ///< kinds of our records, separated by spaces; `*` is every kind
  std::string_view path;    ///< members in the API's names, separated by dots; `[]` is each element of a list
  std::string_view member;  ///< one more member below `path`, whose name may have dots; empty: none
  Handling handling;
  std::string_view reason;
};

/// The whole table, as plugins/k8s/README.md prints it.
std::span<const Exception> exceptions();
/// Annotations by which a person lets a controller inject a caBundle. They are compared themselves.
std::span<const std::string_view> injectors();

/// Removes from an object of the API what the table names for its kind. Pure.
void remove_exceptions(const std::string& kind, nlohmann::json& object);

/// Removes from an object of the API each `{}` that the table calls hollow for its kind. Pure.
void remove_hollow(const std::string& kind, nlohmann::json& object);
/// Returns true if remove_hollow() would remove something.
bool has_hollow(const std::string& kind, const nlohmann::json& object);

/// Removes what is at `path` (members; `*` is each member of an object, `[]` each element of a list), and every object
/// and list that this empties. Returns true if it emptied `from` itself.
bool erase_at(nlohmann::json& from, std::span<const std::string> path);
/// Splits `spec.ports.*.name` at its dots.
std::vector<std::string> path_segments(std::string_view path);

}  // namespace driftd::k8s
