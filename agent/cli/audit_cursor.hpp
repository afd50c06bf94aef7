// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace driftd::cli {

/// The file in which `driftd audit export --state FILE` remembers the last line that a receiver has: its number and its
/// hash, by which another log under the same numbers is noticed.
struct AuditCursor {
  std::string id, hash;  ///< empty: nothing was sent yet

  /// Returns an empty cursor if there is no file, and `invalid` if the file holds anything but a number and a hash.
  static Result<AuditCursor> read(const std::string& file);
  /// Replaces the file as a whole; what it says is on the disk when this returns.
  Status write(const std::string& file) const;
};

}  // namespace driftd::cli
