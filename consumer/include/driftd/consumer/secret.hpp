// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::consumer {

/// A password, token or user name in clear text. It cannot be printed by accident: the text comes out of reveal() only.
/// The memory is overwritten when it ends. One thread at a time.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// Takes as long for any two texts of the same length.
  friend bool operator==(const Secret& a, const Secret& b);

 private:
  void wipe();
  std::string text_;
};

}  // namespace driftd::consumer
