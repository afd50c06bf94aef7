// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace driftd::check {

/// Finds planted secrets in text: as they are, JSON-escaped, URL-encoded, in hex, in base64 at any offset.
class SecretFinder {
 public:
  /// Secrets shorter than 8 bytes, and those that `public_text` holds anyway, are not looked for: they are also words.
  SecretFinder(const std::map<std::string, std::string>& secrets, const std::string& public_text);
  bool empty() const { return forms_.empty(); }
  /// How the first one found is written (`plain`, `hex` ...); empty: none.
  std::string find(const std::string& text) const;

 private:
  std::vector<std::pair<std::string, std::string>> forms_;  ///< form, name of the form
};

}  // namespace driftd::check
