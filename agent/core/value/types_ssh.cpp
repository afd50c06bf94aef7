// SPDX-License-Identifier: Apache-2.0
// SSH public keys as `authorized_keys` holds them: OpenSSH's sshd(8) for the lines, RFC 4253 6.6 for the blobs.
#include <openssl/evp.h>
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/digest.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

struct Line {
  std::string options, type, blob;
};

/// Removes and returns the first word, and the spaces after it. With `quoted`, spaces between double quotes belong to
/// the word.
std::string_view take_word(std::string_view& rest, bool quoted) {
  std::size_t end = 0;
  bool inside = false;
  for (; end < rest.size() && (inside || (rest[end] != ' ' && rest[end] != '\t')); ++end) {
    if (quoted && rest[end] == '\\' && end + 1 < rest.size() && rest[end + 1] == '"')
      ++end;
    else if (quoted && rest[end] == '"')
      inside = !inside;
  }
  end = std::min(end, rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t", end), rest.size()));
  return word;
}

/// Decodes strict RFC 4648 base64 with padding. Empty if the text is not valid.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const auto padding = text.size() - std::min(text.find_last_not_of('=') + 1, text.size());
  if (padding > 2) return std::nullopt;
  out.resize(static_cast<std::size_t>(size) - padding);
  return base64(out) == text ? std::optional(std::move(out)) : std::nullopt;  // OpenSSL skips blanks and stray bits
}

/// Removes and returns a string of RFC 4251: its size in 4 bytes, then its bytes.
std::optional<std::string_view> take_string(std::string_view& rest) {
  if (rest.size() < 4) return std::nullopt;
  std::size_t size = 0;
  for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(rest[static_cast<std::size_t>(i)]);
  if (rest.size() - 4 < size) return std::nullopt;
  const auto out = rest.substr(4, size);
  rest.remove_prefix(4 + size);
  return out;
}

/// Returns true if the blob begins with its own type and, unless it is a certificate, has only complete strings after
/// it.
bool is_key(std::string_view type, std::string_view blob) {
  const auto inner = take_string(blob);
  if (!inner || *inner != type || blob.empty()) return false;
  if (type.ends_with("-cert-v01@openssh.com")) return true;
  while (!blob.empty()) {
    if (!take_string(blob)) return false;
  }
  return true;
}

/// Parses `type blob [comment]`.
std::optional<Line> parse_key(std::string_view rest) {
  const auto type = take_word(rest, false);
  auto blob = decode_base64(take_word(rest, false));
  if (!blob || !is_key(type, *blob)) return std::nullopt;
  return Line{{}, std::string(type), std::move(*blob)};
}

/// Parses a line of authorized_keys: a key, with or without options before it.
std::optional<Line> parse_line(std::string_view text) {
  if (auto plain = parse_key(text)) return plain;
  const auto options = take_word(text, true);
  auto out = parse_key(text);
  if (out) out->options = options;
  return out;
}

/// Returns the fingerprint as `ssh-keygen -l` prints it, so that people can compare.
std::string fingerprint(const Line& line) {
  std::string sum = base64(sha256(line.blob));
  sum.resize(std::min(sum.find('='), sum.size()));
  return (line.options.empty() ? "" : line.options + " ") + line.type + " SHA256:" + sum;
}

}  // namespace

Result<std::string> ssh_key(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t start = 0, number = 1; start < text.size(); ++number) {
    const auto end = std::min(text.find('\n', start), text.size());
    const auto line = strip(text.substr(start, end - start));
    start = end + 1;
    if (line.empty() || line.front() == '#') continue;
    auto key = parse_line(line);
    if (!key)
      return fail(Code::invalid, "expected SSH public keys, found no such key in line " + std::to_string(number));
    lines.push_back(std::move(*key));
    if (lines.size() > kMaxElements) return too_large("more than " + std::to_string(kMaxElements) + " SSH keys");
  }
  // The order of different keys does not matter. For the same key, sshd uses the first line whose options allow the
  // login.
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.blob < b.blob; });
  Value::Array out;
  std::set<std::string> seen;  // a repeated line has no effect
  for (const auto& line : lines) {
    if (const auto [shown, fresh] = seen.insert(fingerprint(line)); fresh) out.emplace_back(*shown);
  }
  return render(Value(std::move(out)));
}

}  // namespace driftd::core::types
