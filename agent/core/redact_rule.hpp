// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::core {

/// Where a provider's records have free-form values, which have no meaning to the system: globs over kinds, ids and
/// paths.
struct FreeForm {
  std::string kind, id, path;  ///< an empty id matches every id
};
/// A line of the configuration's `redact:`. The first line that matches counts.
struct RedactRule {
  bool show = false;
  std::string path;  ///< glob over paths; over names if it has only one segment
  friend bool operator==(const RedactRule&, const RedactRule&) = default;
};

}  // namespace driftd::core
