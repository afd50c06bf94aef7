// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/backend.hpp"

namespace driftd::engine {

/// Bytes of the words that count, the last of each registered backend: of each place in a source 8 MiB have room, of
/// each source 64 MiB, so that no place takes another's. Core thread only.
class ReportedBytes {
 public:
  /// Why there is no room for these, which leaves what was counted before; empty: they count instead of that.
  std::string try_add(const std::string& backend, const core::Registrar& who, std::size_t bytes);
  /// Nothing is said of that backend any more.
  void forget(const std::string& backend);

 private:
  struct Entry {
    core::Registrar who;
    std::size_t bytes = 0;
  };
  std::size_t of(const core::Registrar& who) const;

  std::map<std::string, Entry> entries_;           ///< by backend
  std::map<core::Registrar, std::size_t> places_;  ///< sums
  std::map<std::string, std::size_t> sources_;
};

}  // namespace driftd::engine
