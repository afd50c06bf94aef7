// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace driftd {

/// Overwrites a text, in a way that no compiler leaves out, and empties it.
void wipe(std::string& text);

/// A secret in clear text. It cannot be copied, and nothing prints it; its memory is overwritten when it ends. A move
/// leaves nothing behind. One thread at a time.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string&& text);  ///< `text` is wiped
  Secret(Secret&&) noexcept = default;
  Secret& operator=(Secret&& other) noexcept {
    bytes_.swap(other.bytes_);
    return *this;
  }
  ~Secret();

  std::string_view reveal() const { return {bytes_.data(), bytes_.size()}; }
  /// Takes as long for any two secrets of the same length.
  friend bool operator==(const Secret& a, const Secret& b);

 private:
  std::vector<char> bytes_;  ///< on the heap whatever their number, so that a move does not copy them
};

}  // namespace driftd
