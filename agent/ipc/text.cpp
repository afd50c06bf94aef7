// SPDX-License-Identifier: Apache-2.0
#include "ipc/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/escape.hpp"
#include "base/secret_text.hpp"
#include "core/value/value.hpp"
#include "ipc/secret_forms.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::ipc {
namespace {

constexpr std::size_t kShortestScrubbed = 3;
constexpr std::size_t kShortestInDocument = 12;
constexpr std::size_t kMaxLines = 256;  // lines of one secret: an RSA key of 16,384 bits has 200

constexpr std::string_view kRedacted = "[REDACTED]";

constexpr std::size_t kLongestUrl = 4u << 10;  // of a URL across the cut whose user-info is still found

using Hidden = std::vector<bool>;  // one flag for each byte of the text

/// Marks all occurrences. memmem takes linear time, whatever text and secret contain.
void hide_all(std::string_view text, const std::string& what, Hidden& hidden) {
  for (std::size_t at = 0; at < text.size();) {
    const void* found = ::memmem(text.data() + at, text.size() - at, what.data(), what.size());
    if (found == nullptr) return;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    std::fill_n(hidden.begin() + static_cast<std::ptrdiff_t>(at), what.size(), true);
    at += what.size();
  }
}

/// Returns the visible bytes before `end`, and one [REDACTED] for each hidden run that begins there.
std::string render_visible(std::string_view text, std::size_t end, const Hidden& hidden) {
  std::string out;
  for (std::size_t at = 0; at < end;) {
    if (!hidden[at]) {
      out += text[at++];
      continue;
    }
    out += kRedacted;
    while (at < text.size() && hidden[at]) ++at;
  }
  return out;
}

/// Removes an unfinished URL at the end, because the end of its user-info is unknown.
void drop_open_url(std::string& text) {
  const std::size_t blank = text.find_last_of(" \t\n");
  const std::size_t scheme = text.find("://", blank == std::string::npos ? 0 : blank);
  if (scheme == std::string::npos) return;
  text.resize(scheme + 3);
  text += kRedacted;
}

void replace_all(std::string& text, const std::string& what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + kRedacted.size())) {
    text.replace(at, what.size(), kRedacted);
  }
}

std::string escaped(const std::string& secret) {
  const std::string quoted = core::render(core::Value(secret));
  return quoted.substr(1, quoted.size() - 2);
}

void longest_first(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::uint64_t eight = 0;
    for (; text.size() >= sizeof eight; text.remove_prefix(sizeof eight)) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080) != 0) break;
    }
    if (text.empty()) return true;
    const std::size_t n = utf8_sequence(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

namespace {

std::string make_printable(std::string_view text, std::size_t max_bytes, bool lines) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = utf8_sequence(text);
    if (out.size() + std::max<std::size_t>(n, 1) > max_bytes) break;
    const bool kept = n != 0 && (lines || !is_control_character(text.substr(0, n)));
    if (kept) out += text.substr(0, n);
    if (!kept) out += '?';
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) { return make_printable(text, max_bytes, true); }

std::string as_sentence(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(kBlank, at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    if (!out.empty()) out += ' ';
    out += text.substr(begin, end - begin);
    at = end;
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t max_bytes) { return make_printable(text, max_bytes, false); }

void Scrubber::add(const std::string& form, bool everywhere) {
  if (form.size() >= kShortestScrubbed) all_.push_back(form);
  if (everywhere && form.size() >= kShortestInDocument) long_.push_back(form);
}

void Scrubber::add_forms(const std::string& secret, bool everywhere) {
  if (secret.size() < kShortestScrubbed) return;
  for (const auto& form : {secret, percent_decoded(secret)}) {
    add(form, everywhere);
    if (is_utf8(form)) add(escaped(form), everywhere);
    add(percent_encoded(form), everywhere);
    add(to_base64(form), everywhere);
  }
}

/// Adds the secret parts of a text: of a URL the user-info, its password and the values of the query; of a connection
/// string the value of `password=`.
void Scrubber::add_parts(std::string_view text) {
  const SecretParts parts = secret_parts(text);
  for (const auto& pair : parts.pairs) {
    add(to_base64(pair), true);
    add(to_base64(percent_decoded(pair)), true);
  }
  for (const auto& part : parts.secrets) add_forms(part, true);
}

/// Adds each line of a key in PEM, because stderr arrives line by line.
void Scrubber::add_lines(std::string_view secret) {
  if (secret.find('\n') == std::string_view::npos) return;
  for (std::size_t lines = 0; !secret.empty() && lines < kMaxLines; ++lines) {
    std::string_view line = secret.substr(0, secret.find('\n'));
    secret.remove_prefix(std::min(secret.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() >= kShortestInDocument && !line.starts_with("-----")) add(std::string(line), false);
  }
}

void Scrubber::add_all(const std::map<std::string, std::string>& secrets, std::string_view settings_json) {
  for (const auto& [token, secret] : secrets) {
    const bool revealed = !settings_json.empty() && settings_json.find(token) == std::string_view::npos;
    if (!revealed) add_forms(secret, true);
    if (revealed && displayed_setting(secret) == kRedacted) add_forms(secret, false);
    add_parts(secret);
    add_lines(secret);
  }
  const auto settings = core::parse(settings_json);
  if (settings) for_each_login(*settings, secrets, [this](const std::string& pair) { add(to_base64(pair), true); });
  longest_first(all_);
  longest_first(long_);
}

std::size_t Scrubber::lookahead() const { return kLongestUrl + (all_.empty() ? 0 : all_.front().size()); }

/// Scrubs a text and cuts it to `max_bytes` plus the length of a URL. A byte is shown only if the longest secret that
/// begins at it would end within the examined part; what follows may be a part of a secret.
std::string Scrubber::scrub_prefix(std::string_view text, std::size_t max_bytes) const {
  const std::size_t room = max_bytes >= text.size() ? text.size() : max_bytes + lookahead();
  bool cut = text.size() > room;
  text = text.substr(0, room);
  Hidden hidden(text.size());
  for (const auto& secret : all_) hide_all(text, secret, hidden);
  std::string out = render_visible(text, cut ? room - (lookahead() - kLongestUrl) : text.size(), hidden);
  if (max_bytes < out.size() && out.size() - max_bytes > kLongestUrl) {
    out.resize(max_bytes + kLongestUrl);
    cut = true;
  }
  if (cut) drop_open_url(out);
  return out.find("://") == std::string::npos ? out : without_credentials(out);
}

std::string Scrubber::text(std::string_view text) const { return scrub_prefix(text, text.size()); }

std::string Scrubber::printable(std::string_view text, std::size_t max_bytes) const {
  return make_printable(scrub_prefix(text, max_bytes), max_bytes, true);
}

std::string Scrubber::one_line(std::string_view text, std::size_t max_bytes) const {
  return make_printable(scrub_prefix(text, max_bytes), max_bytes, false);
}

std::string Scrubber::document(std::string json) const {
  for (const auto& secret : long_) replace_all(json, secret);
  return json;
}

}  // namespace driftd::ipc
