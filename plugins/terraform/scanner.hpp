// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/bounded_json.hpp"

namespace driftd::terraform {

/// Number of zero bytes that must follow a text that is scanned; they end every token, so that no byte is asked whether
/// it is the last.
inline constexpr std::size_t kPadding = 64;

/// What a Scanner noticed of the values that it read.
struct Traits {
  std::uint64_t values = 0;   ///< values that nest at most common::kMaxNesting deep
  std::uint64_t deepest = 0;  ///< nesting of containers; 0: a scalar
  bool blanks = false;        ///< there is white space between tokens
  bool unordered = false;     ///< a key does not sort behind the one before it, so a key may stand twice in an object
  bool escaped_key = false;   ///< a key has a backslash, so its name is not its text
  bool secret_key = false;    ///< the name of a member suggests a secret, see secret_name()
};

/// Checks one JSON value (RFC 8259) that arrives in pieces, without building anything. Accepts the texts and numbers
/// that nlohmann's parser accepts: surrogates in pairs, numbers in the range of a double. Does not check UTF-8.
class Scanner {
 public:
  enum class Result { value, more, error };

  /// Begins a value and forgets what was noticed of the one before.
  void begin();
  /// Reads on at `at` and moves it behind what was read. Returns `value` behind the last byte of the value; `more` if
  /// the text ends before that: call again with the same `at` and more text behind it. A text or number is read once it
  /// is whole. `begin` is where the value began; it may move with the text, and is at most 4 GiB before `end`. Null:
  /// the text before `at` is not kept, and Traits is not filled but for `blanks`. kPadding zero bytes follow `end`.
  /// `last`: nothing comes behind `end`.
  Result run(const char* begin, const char*& at, const char* end, bool last);

  const Traits& traits() const { return traits_; }    ///< of the value as far as it was read
  const char* expected() const { return expected_; }  ///< after an error: what is wrong at `at`

 private:
  enum class Next : std::uint8_t { value, value_or_end, key, key_or_end, colon, comma_or_end, nothing };
  struct Level {
    bool object = false;
    std::uint32_t key = 0, key_size = 0;  ///< the last key, from the beginning of the value. Size 0: none
  };
  struct Text {
    const char *begin, *end;
    bool last;
  };

  Result error(const char* expected);
  Result stop(const char* at, const Text& text, const char* expected);
  bool in_object() const { return depth_ <= levels_.size() ? levels_[depth_ - 1].object : deep_[depth_ - 1]; }
  void open(bool object);
  void close();
  Result value(const char*& at, const Text& text);
  Result quoted(const char*& at, const Text& text, std::string_view& quoted, bool& escaped);
  Result key(const char*& at, const Text& text);
  Result scalar(const char*& at, const Text& text);
  Result literal(const char*& at, const Text& text, std::string_view word);
  void note_key(std::string_view key, bool escaped, const char* begin);
  void count() { traits_.values += depth_ <= common::kMaxNesting ? 1 : 0; }
  void scalar_ends() { next_ = depth_ == 0 ? Next::nothing : Next::comma_or_end; }

  Next next_ = Next::value;
  std::uint64_t depth_ = 0;
  std::array<Level, common::kMaxNesting> levels_{};
  std::vector<bool> deep_;  ///< by depth, of what nests deeper than that: true for an object
  Traits traits_;
  const char* expected_ = "";
};

/// Returns the first byte at or behind `at` that is not white space between tokens.
const char* behind_blanks(const char* at);
/// Returns the first `"`, `\` or control character at or behind `at`.
const char* end_of_plain(const char* at);

}  // namespace driftd::terraform
