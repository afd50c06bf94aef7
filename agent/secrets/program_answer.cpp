// SPDX-License-Identifier: Apache-2.0
#include "secrets/program_answer.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/instant.hpp"
#include "core/value/value.hpp"
#include "ipc/text.hpp"

namespace driftd::secrets {
namespace {

constexpr std::size_t kMaxLine = 200;  // bytes of the line of stderr that is shown
constexpr Nanos kSecond = 1'000'000'000;

std::string text_of(const core::Value* value) {
  return value != nullptr && value->string() != nullptr ? *value->string() : std::string();
}

/// Parses a time to whole seconds, without its fraction. A time beyond the range of nanoseconds is limited to it.
std::optional<Nanos> parse_expiry(const std::string& text) {
  const auto instant = parse_instant(text);
  if (!instant) return std::nullopt;
  constexpr Nanos kLast = std::numeric_limits<Nanos>::max() / kSecond;
  return std::clamp(instant->seconds, -kLast, kLast) * kSecond;
}

/// Returns status.expirationTimestamp of an ExecCredential. Empty if the text is not one, or has none.
std::string expiry_text(const std::string& text) {
  if (text.empty() || text.front() != '{') return {};
  const auto document = core::parse(text);
  if (!document || text_of(document->find("kind")) != "ExecCredential") return {};
  const std::string version = text_of(document->find("apiVersion"));
  if (version != "client.authentication.k8s.io/v1" && version != "client.authentication.k8s.io/v1beta1") return {};
  const core::Value* status = document->find("status");
  return status == nullptr ? std::string() : text_of(status->find("expirationTimestamp"));
}

void add_strings(const core::Value& value, std::map<std::string, std::string>& out) {
  if (const auto* text = value.string()) out[*text] = *text;
  if (const auto* items = value.array()) {
    for (const auto& item : *items) add_strings(item, out);
  }
  if (const auto* members = value.object()) {
    for (const auto& [name, member] : *members) {
      if (name != "kind" && name != "apiVersion") add_strings(member, out);
    }
  }
}

void add_lines(std::string_view text, std::map<std::string, std::string>& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    if (line.ends_with('\r')) line.pop_back();
    out[line] = line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

Result<ProgramAnswer> read_answer(std::string output, Nanos now) {
  ProgramAnswer out;
  out.text = std::move(output);
  if (out.text.find('\0') != std::string::npos) return fail(Code::corrupt, "its answer contains a NUL byte");
  if (out.text.ends_with('\n')) out.text.pop_back();
  if (out.text.ends_with('\r')) out.text.pop_back();
  if (out.text.empty()) return fail(Code::corrupt, "its answer is empty");
  const std::string expiry = expiry_text(out.text);
  if (expiry.empty()) return out;
  const auto at = parse_expiry(expiry);
  const std::string shown = ipc::one_line(expiry, 40);
  if (!at)
    return fail(Code::corrupt,
                "status.expirationTimestamp of its answer is not a valid RFC 3339 time: '" + shown + "'");
  if (*at <= now) {
    return fail(Code::corrupt,
                "its answer expired at " + shown + ", and now it is " + render_time(now) + ": look at both clocks");
  }
  out.expires_ns = *at;
  return out;
}

std::chrono::milliseconds next_run(const ProgramAnswer& answer, std::chrono::milliseconds refresh, Nanos now,
                                   double jitter) {
  using Millis = std::chrono::milliseconds;
  if (answer.expires_ns == 0)
    return Millis(static_cast<std::int64_t>(static_cast<double>(refresh.count()) * (0.9 + 0.1 * jitter)));
  const double left = static_cast<double>(answer.expires_ns - now) / 1e6;
  const auto wait = Millis(static_cast<std::int64_t>(left * (0.75 + 0.1 * jitter)));
  return std::clamp<Millis>(wait, std::chrono::seconds(1), std::chrono::hours(24));
}

std::string last_line(std::string_view errors, const std::vector<std::string>& secrets) {
  std::map<std::string, std::string> known;
  for (const auto& secret : secrets) {
    known[secret] = secret;
    add_lines(secret, known);
    if (const auto document = core::parse(secret)) add_strings(*document, known);
  }
  const std::string clean = ipc::Scrubber(known).text(std::string(errors));
  std::string_view rest = clean;
  const auto blank = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
  while (!rest.empty() && blank(rest.back())) rest.remove_suffix(1);
  const std::size_t before = rest.rfind('\n');
  if (before != std::string_view::npos) rest.remove_prefix(before + 1);
  return ipc::one_line(rest, kMaxLine);
}

}  // namespace driftd::secrets
