// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <streambuf>
#include <string_view>

namespace driftd {

/// An input stream for yaml-cpp that limits how far its scanner reads ahead. In a flow collection (`[a, b, …`) the
/// scanner keeps every token, some 130 bytes each, until the bracket closes: 1 MiB of brackets takes 230 MiB before the
/// parser emits its first event. Borrows the text. [one thread]
class PacedInput final : public std::streambuf {
 public:
  /// If the parser reads more than `max_ahead` units (see token_cost) without progress(), the read throws
  /// std::length_error, which leaves the parser. `tail` is read after `text`. Both are read in place and must outlive
  /// this.
  PacedInput(std::string_view text, std::size_t max_ahead, std::string_view tail = {})
      : max_ahead_(max_ahead),
        text_(text),
        tail_(tail) {
    read(text_, 0);
  }

  /// Call when the parser emitted an event: it is then consuming the tokens that it kept.
  void progress() { ahead_ = 0; }

 protected:
  /// Returns the next byte without taking it, eof behind `tail`.
  int_type underflow() override {
    switch_to_tail();
    return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
  }
  /// Goes back from `tail` into `text`: yaml-cpp reads the first bytes to find the encoding and puts them back.
  int_type pbackfail(int_type) override {
    if (!in_tail_ || gptr() != eback() || text_.empty()) return traits_type::eof();
    in_tail_ = false;
    read(text_, text_.size() - 1);
    return traits_type::to_int_type(*gptr());
  }
  /// Copies up to `wanted` bytes and counts what they cost. Throws std::length_error, see the constructor.
  std::streamsize xsgetn(char* to, std::streamsize wanted) override {
    switch_to_tail();
    const auto count = std::min<std::streamsize>(wanted, egptr() - gptr());
    for (std::streamsize i = 0; i < count; ++i) ahead_ += token_cost(gptr()[i]);
    if (ahead_ > max_ahead_) throw std::length_error("a list or map in brackets that is too large");
    std::copy_n(gptr(), count, to);
    gbump(static_cast<int>(count));
    return count;
  }

 private:
  /// Goes on with `tail` once `text` is read.
  void switch_to_tail() {
    if (gptr() != egptr() || in_tail_) return;
    in_tail_ = true;
    read(tail_, 0);
  }
  /// Makes this text the one that is read, from the byte `from` on.
  void read(std::string_view text, std::size_t from) {
    char* begin = const_cast<char*>(text.data());  // never written: there is no put area
    setg(begin, begin + from, begin + text.size());
  }
  /// Returns what one character makes the scanner keep, in units of at most 280 bytes. A bracket costs more, because it
  /// opens a level.
  static std::size_t token_cost(char c) {
    switch (c) {
      case '[':
      case '{':
        return 2;
      case ']':
      case '}':
      case ',':
      case ':':
      case '&':
      case '*':
      case '!':
      case '?':
        return 1;
      default:
        return 0;
    }
  }

  std::size_t max_ahead_, ahead_ = 0;  ///< units, see token_cost
  std::string_view text_, tail_;
  bool in_tail_ = false;  ///< `tail` is being read
};

}  // namespace driftd
