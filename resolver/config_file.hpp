// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "driftd/consumer/result.hpp"
#include "driftd/consumer/secret.hpp"

namespace driftd::resolver {

/// The file of backends. It has passwords in clear, so it is 0400, and its volume should be in memory.
class ConfigFile {
 public:
  explicit ConfigFile(std::string path);
  /// Removes what a resolver that was killed left beside the file.
  void remove_leftovers() const;
  /// Replaces the file: a reader sees the former one or this one, never a part. After a failure the former one is
  /// there.
  consumer::Status write(const consumer::Secret& text) const;
  /// Returns the text of a file that write() made: one of this user with these rights. nullopt: there is none.
  std::optional<consumer::Secret> read() const;
  /// Returns true if the file is as write() would make it: a file that somebody removed or changed is not.
  bool has(const consumer::Secret& text) const;
  /// Returns false if the folder is on a disk, or if that cannot be found out.
  bool in_memory() const;

 private:
  std::string path_, folder_, prefix_;
};

}  // namespace driftd::resolver
