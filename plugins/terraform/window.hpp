// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "terraform/spool.hpp"

namespace driftd::terraform {

/// The part of a text that a walk looks at. It moves on with the cursor, and grows where a part must be kept. Checks
/// that the text is UTF-8. kPadding zero bytes follow its end. Wiped by the destructor.
class Window {
 public:
  explicit Window(const Spool& state);     ///< borrows the spool
  explicit Window(std::string_view text);  ///< copies the text
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  const char* at() const { return buffer_.data() + at_; }    ///< the cursor
  const char* end() const { return buffer_.data() + end_; }  ///< of what was read so far
  bool last() const { return ended_; }                       ///< nothing comes behind end()
  std::uint64_t offset() const { return base_ + at_; }       ///< of the cursor, from the beginning of the text
  const char* pointer(std::uint64_t offset) const { return buffer_.data() + (offset - base_); }
  void move_to(const char* to) { at_ = static_cast<std::size_t>(to - buffer_.data()); }

  /// Keeps the text from the cursor on until release().
  void keep() { kept_ = offset(); }
  void release() { kept_.reset(); }
  /// Reads more. Pointers into the text are not valid afterwards. Throws CORRUPT if what comes next is not UTF-8.
  void more();
  /// Throws CORRUPT with line and column of `where`.
  [[noreturn]] void fail(const char* where, const std::string& what) const;

 private:
  void drop(std::size_t bytes);  ///< forgets so many at the beginning
  void fill();
  void check_utf8(std::size_t from);

  std::optional<Spool::Reader> reader_;
  std::string buffer_;
  std::size_t at_ = 0, end_ = 0, unchecked_ = 0;  ///< from the beginning of the buffer; text and what was read of it
  std::size_t read_ = 0;  ///< end of what was read; behind end_ stands part of a character, or what is not UTF-8
  bool ended_ = false, bad_ = false;     ///< bad: what comes behind end_ is not UTF-8
  std::uint64_t base_ = 0;               ///< offset of the buffer in the text
  std::uint64_t line_ = 1, column_ = 0;  ///< of the beginning of the buffer: lines from 1, bytes before it in its line
  std::optional<std::uint64_t> kept_;    ///< offset
};

}  // namespace driftd::terraform
