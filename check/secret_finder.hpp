// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace driftd::check {

/// Finds planted secrets in a text: in plain form, JSON-escaped, URL-encoded, in hex, or in base64 at any offset.
class SecretFinder {
 public:
  /// Ignores secrets shorter than 8 bytes and those that `public_text` contains: they occur in ordinary text too.
  SecretFinder(const std::map<std::string, std::string>& secrets, const std::string& public_text);
  bool empty() const { return forms_.empty(); }
  /// Returns the form of the first secret found (`plain`, `hex` ...). Empty if there is none.
  std::string find(const std::string& text) const;

 private:
  std::vector<std::pair<std::string, std::string>> forms_;  ///< the encoded secret and the name of the encoding
};

}  // namespace driftd::check
