// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/checked_digest.hpp"
#include "driftd/sdk/types.hpp"

namespace driftd::kafka {

/// A SHA-256 over records in their order: over what is compared and their status, not over observation times.
class Digest {
 public:
  explicit Digest(const std::string& scope);  ///< `scope` is part of the digest
  /// Adds kind, id, external name, body, status and the paths that were unread.
  void add(const sdk::Record& record);
  std::string text();  ///< hex; ends the digest

 private:
  void put(const std::string& part);  ///< with its length in front
  common::DigestContext context_ = common::begin_sha256();
};

}  // namespace driftd::kafka
