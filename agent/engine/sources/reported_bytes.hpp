// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/backend.hpp"

namespace driftd::engine {

/// Limits the bytes of accepted reports, of which the last one of each registered backend counts: 8 MiB for each
/// namespace of a source and 64 MiB for each source, so that no namespace uses up the room of another. Core thread
/// only.
class ReportedBytes {
 public:
  /// Replaces the bytes that count for a backend. Returns why there is no room; then the earlier ones still count.
  /// Empty if there is.
  std::string try_add(const std::string& backend, const core::Registrar& who, std::size_t bytes);
  /// Drops the bytes of a backend on which nothing is reported any more.
  void forget(const std::string& backend);

 private:
  struct Entry {
    core::Registrar who;
    std::size_t bytes = 0;
  };
  std::size_t of(const core::Registrar& who) const;  ///< sum of one registrar; 0 if it has none

  std::map<std::string, Entry> entries_;           ///< by backend
  std::map<core::Registrar, std::size_t> places_;  ///< sums of `entries_`
  std::map<std::string, std::size_t> sources_;     ///< the same for each source
};

}  // namespace driftd::engine
