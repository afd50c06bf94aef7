// SPDX-License-Identifier: Apache-2.0
#include "terraform/scanner.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "terraform/secrets.hpp"

namespace driftd::terraform {
namespace {

constexpr std::size_t kLongestEscape = 12;  ///< `\ud83d\ude00`
constexpr std::size_t kSafeDigits = 300;    ///< without an exponent, so many digits are in the range of a double

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// Returns the value of four hexadecimal digits; -1 if they are not.
int hex4(const char* at) {
  int out = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    const int digit = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
    if (digit < 0) return -1;
    out = out << 4 | digit;
  }
  return out;
}

/// Returns the end of the escape at `at`; null if it is not valid.
const char* end_of_escape(const char* at) {
  const char c = at[1];
  if (c != 'u') return c != '\0' && std::strchr("\"\\/bfnrt", c) != nullptr ? at + 2 : nullptr;
  const int unit = hex4(at + 2);
  if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) return nullptr;
  if (unit < 0xD800 || unit > 0xDBFF) return at + 6;
  if (at[6] != '\\' || at[7] != 'u') return nullptr;
  const int low = hex4(at + 8);
  return low >= 0xDC00 && low <= 0xDFFF ? at + 12 : nullptr;
}

const char* end_of_digits(const char* at) {
  while (is_digit(*at)) ++at;
  return at;
}

/// Returns the end of the number at `at`, null if it is not one. The end of the text ends it, too.
const char* end_of_number(const char* at) {
  const char* from = at;
  if (*at == '-') ++at;
  if (!is_digit(*at)) return nullptr;
  at = *at == '0' ? at + 1 : end_of_digits(at);
  if (*at == '.') {
    if (!is_digit(at[1])) return nullptr;
    at = end_of_digits(at + 1);
  }
  const bool exponent = *at == 'e' || *at == 'E';
  if (exponent) {
    ++at;
    if (*at == '+' || *at == '-') ++at;
    if (!is_digit(*at)) return nullptr;
    at = end_of_digits(at);
  }
  if (!exponent && static_cast<std::size_t>(at - from) < kSafeDigits) return at;
  return std::isfinite(std::strtod(std::string(from, at).c_str(), nullptr)) ? at : nullptr;
}

/// Finds the end of the text whose first byte is at `at`. Returns null if it is not valid, or ends with `end`; then
/// `at` is moved to the place.
const char* end_of_text(const char*& at, const char* end, bool last, bool& escaped) {
  const char* to = at;
  for (;;) {
    to = end_of_plain(to);
    if (*to == '"') return to;
    if (*to != '\\' || (!last && end - to < static_cast<std::ptrdiff_t>(kLongestEscape))) break;
    const char* behind = end_of_escape(to);
    if (behind == nullptr) break;
    escaped = true;
    to = behind;
  }
  at = *to == '\\' && !last && end - to < static_cast<std::ptrdiff_t>(kLongestEscape) ? end : to;
  return nullptr;
}

}  // namespace

const char* end_of_plain(const char* at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101ull, kHigh = kOnes << 7;
  for (;; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    // In each expression the lowest byte whose high bit is set is one of the bytes that are looked for (bytes behind it
    // may be set by a borrow); bytes of 0x80 and above are never set by the first.
    const std::uint64_t quote = word ^ kOnes * '"', back = word ^ kOnes * '\\';
    const std::uint64_t found = ((word - kOnes * 0x20) & ~word) | ((quote - kOnes) & ~quote) | ((back - kOnes) & ~back);
    if ((found & kHigh) == 0) continue;
    if constexpr (std::endian::native == std::endian::little) return at + std::countr_zero(found & kHigh) / 8;
    while (static_cast<unsigned char>(*at) >= 0x20 && *at != '"' && *at != '\\') ++at;
    return at;
  }
}

const char* behind_blanks(const char* at) {
  while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
  return at;
}

void Scanner::begin() {
  next_ = Next::value;
  depth_ = 0;
  deep_.clear();
  traits_ = {};
}

Scanner::Result Scanner::error(const char* expected) {
  expected_ = expected;
  return Result::error;
}

Scanner::Result Scanner::stop(const char* at, const Text& text, const char* expected) {
  if (at < text.end) return error(expected);
  return text.last ? error("the text ends here") : Result::more;
}

void Scanner::open(bool object) {
  count();
  if (++depth_ <= levels_.size()) {
    levels_[depth_ - 1] = {object, 0, 0};
  } else {
    deep_.resize(depth_);
    deep_[depth_ - 1] = object;
  }
  if (depth_ > traits_.deepest) traits_.deepest = depth_;
  next_ = object ? Next::key_or_end : Next::value_or_end;
}

void Scanner::close() {
  --depth_;
  scalar_ends();
}

/// Most states are written by Terraform, with sorted keys: there each key is compared with the one before it only.
void Scanner::note_key(std::string_view key, bool escaped, const char* begin) {
  if (escaped) {
    traits_.escaped_key = true;
  } else if (secret_name(key)) {
    traits_.secret_key = true;
  }
  if (depth_ > levels_.size()) return;
  Level& level = levels_[depth_ - 1];
  if (level.key_size > 0 && std::string_view(begin + level.key, level.key_size) >= key) traits_.unordered = true;
  level.key = static_cast<std::uint32_t>(key.data() - begin);
  level.key_size = static_cast<std::uint32_t>(key.size());
  if (key.empty()) traits_.unordered = true;  // size 0 says that there is no key yet
}

/// Reads the text in quotes at `at`. `quoted` becomes what stands between the quotes.
Scanner::Result Scanner::quoted(const char*& at, const Text& text, std::string_view& quoted, bool& escaped) {
  const char* from = at + 1;
  const char* to = end_of_text(from, text.end, text.last, escaped);
  if (to == nullptr) {
    if (from < text.end || text.last) at = from;
    return stop(from, text, "a text with a control character or a bad escape");
  }
  quoted = {at + 1, static_cast<std::size_t>(to - at - 1)};
  at = to + 1;
  return Result::value;
}

Scanner::Result Scanner::key(const char*& at, const Text& text) {
  bool escaped = false;
  std::string_view name;
  const Result out = quoted(at, text, name, escaped);
  if (out != Result::value) return out;
  if (text.begin != nullptr) note_key(name, escaped, text.begin);
  next_ = Next::colon;
  return Result::value;
}

Scanner::Result Scanner::literal(const char*& at, const Text& text, std::string_view word) {
  const auto left = static_cast<std::size_t>(text.end - at);
  if (left < word.size() && !text.last && std::memcmp(at, word.data(), left) == 0) return Result::more;
  if (std::memcmp(at, word.data(), word.size()) != 0) return error("expected a value");
  at += word.size();
  return Result::value;
}

Scanner::Result Scanner::scalar(const char*& at, const Text& text) {
  if (*at == '"') {
    bool escaped = false;
    std::string_view ignored;
    return quoted(at, text, ignored, escaped);
  }
  if (*at == 't') return literal(at, text, "true");
  if (*at == 'f') return literal(at, text, "false");
  if (*at == 'n') return literal(at, text, "null");
  if (*at != '-' && !is_digit(*at)) return error("expected a value");
  const char* to = end_of_number(at);
  if (!text.last && (to == nullptr || to == text.end)) {
    // A number that reaches the end of the text so far may be longer than that.
    const char* reach = at;
    while (is_digit(*reach) || (*reach != '\0' && std::strchr("+-.eE", *reach) != nullptr)) ++reach;
    if (reach == text.end) return Result::more;
  }
  if (to == nullptr) return error("expected a number");
  at = to;
  return Result::value;
}

Scanner::Result Scanner::value(const char*& at, const Text& text) {
  if (*at == '{' || *at == '[') {
    open(*at == '{');
    ++at;
    return Result::value;
  }
  const Result out = scalar(at, text);
  if (out != Result::value) return out;
  count();
  scalar_ends();
  return out;
}

Scanner::Result Scanner::run(const char* begin, const char*& at, const char* end, bool last) {
  const Text text{begin, end, last};
  while (next_ != Next::nothing) {
    if (static_cast<unsigned char>(*at) <= ' ') {
      const char* to = behind_blanks(at);
      if (to != at) traits_.blanks = true;
      at = to;
      if (at >= end) return stop(at, text, "");
    }
    Result step = Result::value;
    switch (next_) {
      case Next::value_or_end:
      case Next::value:
        if (*at == ']' && next_ == Next::value_or_end) {
          ++at;
          close();
        } else {
          step = value(at, text);
        }
        break;
      case Next::key_or_end:
      case Next::key:
        if (*at == '"') {
          step = key(at, text);
        } else if (*at == '}' && next_ == Next::key_or_end) {
          ++at;
          close();
        } else {
          return error("expected a key in quotes");
        }
        break;
      case Next::colon:
        if (*at != ':') return error("expected a colon");
        ++at;
        next_ = Next::value;
        break;
      case Next::comma_or_end: {
        const bool object = in_object();
        if (*at == ',') {
          next_ = object ? Next::key : Next::value;
        } else if (*at == (object ? '}' : ']')) {
          close();
        } else {
          return error("expected a comma or a closing bracket");
        }
        ++at;
        break;
      }
      case Next::nothing:
        break;
    }
    if (step != Result::value) return step;
  }
  return Result::value;
}

}  // namespace driftd::terraform
