// SPDX-License-Identifier: Apache-2.0
// base64, gzip and Unicode normal forms.
#include <openssl/evp.h>
#include <utf8proc.h>
#include <zlib.h>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/digest.hpp"
#include "base/escape.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxUnpacked = 1u << 20;

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

/// Returns the bytes of a base64 text in any alphabet, with or without padding and line ends. Empty if it is none.
std::optional<std::string> decode(std::string_view text) {
  if (text.size() > kMaxJson) return std::nullopt;
  std::string plain;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    plain += c == '-' ? '+' : c == '_' ? '/' : c;
  }
  while (!plain.empty() && plain.back() == '=') plain.pop_back();
  if (plain.size() % 4 == 1) return std::nullopt;
  const std::size_t padding = (4 - plain.size() % 4) % 4;
  const std::string padded = plain + std::string(padding, '=');
  std::string out(padded.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(bytes_of(out), bytes_of(padded), static_cast<int>(padded.size()));
  if (length < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(length) - padding);
  return driftd::base64(out) == padded ? std::optional(std::move(out)) : std::nullopt;
}

Result<std::string> gunzip(const std::string& packed) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return too_large("there is not enough memory to unpack it");
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib reads only
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::array<char, 16'384> chunk{};
  for (int state = Z_OK; state != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) return type_mismatch("gzip", "");
    out.append(chunk.data(), chunk.size() - stream.avail_out);
    if (out.size() > kMaxUnpacked) return too_large("more than 1 MiB after unpacking");
  }
  if (stream.avail_in > 0) return type_mismatch("one gzip member", "");  // what follows it would not be compared
  return out;
}

/// Returns the text behind `%7B` and the like (RFC 3986). Empty if it is not percent-encoded as a whole: a character
/// that must be encoded is there as it is, or a `%` is not followed by two digits.
std::optional<std::string> percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c <= ' ' || c == '"' || c == '{' || c == '}') return std::nullopt;
    if (c != '%') {
      out += c;
      continue;
    }
    const int high = i + 2 < text.size() ? digit(text[i + 1]) : -1, low = high < 0 ? -1 : digit(text[i + 2]);
    if (low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return valid_utf8(out) == out ? std::optional(std::move(out)) : std::nullopt;
}

/// Returns true if a character carries more marks than any language uses. Sorting them takes quadratic time, so such a
/// text stays as it is (UAX 15, stream-safe text).
bool has_pile_of_marks(const std::string& text) {
  constexpr int kMaxMarks = 30;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  int marks = 0;
  while (left > 0) {
    utf8proc_int32_t character = 0;
    const auto length = utf8proc_iterate(at, left, &character);
    if (length <= 0) return true;
    marks = utf8proc_get_property(character)->combining_class == 0 ? 0 : marks + 1;
    if (marks > kMaxMarks) return true;
    at += length;
    left -= length;
  }
  return false;
}

}  // namespace

Result<std::string> base64_bytes(std::string_view text) {
  const auto bytes = decode(strip(text));
  if (!bytes) return type_mismatch("base64", text);
  return render(Value(driftd::base64(*bytes)));
}

std::string decoded(Encoding encoding, std::string text) {
  if (encoding == Encoding::none || text.empty()) return text;
  if (encoding == Encoding::percent) return percent_decoded(text).value_or(text);
  auto bytes = decode(strip(text));
  if (!bytes) return text;
  if (encoding == Encoding::gzip_base64 && bytes->starts_with("\x1F\x8B")) {
    auto plain = gunzip(*bytes);
    return plain ? *std::move(plain) : text;
  }
  return valid_utf8(*bytes) == *bytes ? *std::move(bytes) : text;
}

std::string unicode_form(UnicodeForm form, std::string text) {
  if (form == UnicodeForm::none || has_pile_of_marks(text)) return text;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE |
                                                      (form == UnicodeForm::nfkc ? UTF8PROC_COMPAT : 0));
  utf8proc_uint8_t* made = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  return length < 0 ? text : std::string(reinterpret_cast<const char*>(made), static_cast<std::size_t>(length));
}

}  // namespace driftd::core::types
