// SPDX-License-Identifier: Apache-2.0
// Parts of glance(): what differs between two lists, and texts that are cut to a width.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::cli {

/// Indices of elements that differ. An element that changed is paired with the one that is most like it.
struct ListDifference {
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  ///< index before, index after
  std::vector<std::size_t> removed, added;
  Pairs changed, moved;
  bool another_order = false;  ///< the order differs, and too much to name what moved
};
ListDifference difference(const core::Value::Array& before, const core::Value::Array& after);

/// Returns how a person calls a changed element of a list: by the members that say which one it is (a name, or the
/// type, databases, users and address of a rule) and that did not change. Empty if it has none.
std::string element_name(const core::Value& before, const core::Value& after);

/// Returns the text, or its beginning and `…`, in at most `width` bytes. No character is cut in two.
std::string short_text(std::string_view text, std::size_t width);
}  // namespace driftd::cli
