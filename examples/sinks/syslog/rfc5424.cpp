// SPDX-License-Identifier: Apache-2.0
#include "rfc5424.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <vector>

#include "fields.hpp"

namespace syslog_sink {
namespace {

using driftd::sdk::sink::Event;

// The severities of RFC 5424, section 6.2.1, as far as this sink uses them.
enum Severity { kError = 3, kWarning = 4, kNotice = 5, kInfo = 6 };

// Returns a field of the header: printable ASCII without spaces, at most `most` characters, "-" if nothing is left.
std::string header_field(std::string_view text, std::size_t most) {
  std::string out;
  for (const char c : text.substr(0, most)) out += c > ' ' && c < 0x7f ? c : '_';
  return out.empty() ? "-" : out;
}

// Returns the time as RFC 3339 in UTC with milliseconds.
std::string timestamp(std::int64_t ns) {
  const std::time_t seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 48> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::string millis = std::to_string(ns / 1'000'000 % 1'000);
  millis.insert(0, 3 - millis.size(), '0');
  return std::string(text.data(), length) + "." + millis + "Z";
}

// Returns one SD-PARAM with the escapes of section 6.3.3. A control character becomes a space: many receivers split
// their files at line ends.
std::string param(std::string_view name, std::string_view value) {
  std::string out = " " + std::string(name) + "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\' || c == ']') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out + '"';
}

// The members of a body that a message shows.
constexpr std::array<std::string_view, 10> kShown = {
    "changes", "change_class",          "path", "old_value", "new_value", "operation", "drift_id",
    "message", "reconciliation_status", "what"};

// Returns what the body tells. Empty if it is not a JSON object.
Fields read_body(std::string_view body) {
  const auto read = read_fields(
      body, [](std::string_view name) { return std::find(kShown.begin(), kShown.end(), name) != kShown.end(); });
  return read.value_or(Fields());
}

// Returns the path of each change.
std::vector<std::string> changes_of(const Fields& body) {
  std::vector<std::string> out;
  const std::string count = get(body, "data.changes[]", "0");
  for (std::size_t i = 0; std::to_string(i) != count; ++i) out.push_back("data.changes." + std::to_string(i));
  return out;
}

// Returns the value that a `health` change leads to, empty if the event is about something else.
std::string new_health(const Fields& body) {
  for (const auto& change : changes_of(body)) {
    if (get(body, change + ".change_class") == "health") return get(body, change + ".new_value");
  }
  return {};
}

// How urgent an event is. Pending drifts wait for somebody and are warnings; what was decided is a notice; a system
// that does not answer, and trouble of the agent itself, is an error.
Severity severity_of(const Event& event, const Fields& body) {
  if (event.agent_event) {
    const std::string what = get(body, "data.what");
    return what == "budget" || what == "upgrade_refused" || what == "incarnation" || what == "key_rotated" ? kWarning
                                                                                                           : kError;
  }
  const std::string health = new_health(body);
  if (health == "\"down\"") return kError;
  if (health == "\"degraded\"") return kWarning;
  if (!health.empty()) return kNotice;
  const std::string status = get(body, "data.reconciliation_status");
  if (status == "pending" || status == "held") return kWarning;
  return status.empty() ? kInfo : kNotice;
}

// Returns one readable line: `cache server/server: config.timeout "0" -> "77" (pending, d-0226a87c84d812c8)`.
std::string summary(const Event& event, const Fields& body) {
  if (event.agent_event) return get(body, "data.what") + ": " + get(body, "data.message");
  std::string out = std::string(event.attribute("backend"));
  const std::string_view resource = event.attribute("resource");
  if (!resource.empty()) out += " " + std::string(resource);
  out += ":";
  const auto changes = changes_of(body);
  if (changes.empty()) out += " " + std::string(event.attribute("change"));
  for (const auto& change : changes) {
    const std::string before = get(body, change + ".old_value"), after = get(body, change + ".new_value");
    out += " " + get(body, change + ".path") + " " + (before.empty() ? "(absent)" : before) + " -> " +
           (after.empty() ? "(absent)" : after);
  }
  const std::string status = get(body, "data.reconciliation_status"), drift = get(body, "data.drift_id");
  if (!status.empty()) out += " (" + status + (drift.empty() ? "" : ", " + drift) + ")";
  return out;
}

// Cuts at a character of UTF-8, so that no half of one is left.
void cut(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  text.resize(most);
}

// Returns the structured data: what a receiver can filter by without parsing the text.
std::string structured_data(const Event& event, const Fields& body, const Form& form) {
  std::string out = "[" + form.sd_id;
  out += param("id", event.id);
  out += param("type", event.type);
  out += param("key", event.order_key);
  out += param("seq", std::to_string(event.sequence));
  out += param("incarnation", std::to_string(event.incarnation));
  for (const char* name : {"cluster", "provider", "backend", "backend_type", "resource", "change"}) {
    if (const auto value = event.attribute(name); !value.empty()) out += param(name, value);
  }
  for (const char* name : {"reconciliation_status", "drift_id", "operation"}) {
    const std::string value = get(body, std::string("data.") + name);
    if (!value.empty()) out += param(name, value);
  }
  if (event.replay) out += param("replay", "true");
  return out + "]";
}

}  // namespace

std::string message(const Event& event, const Form& form) {
  const Fields body = read_body(event.body);
  const int priority = form.facility * 8 + severity_of(event, body);
  std::string out = "<" + std::to_string(priority) + ">1 " + timestamp(event.time_ns) + " " +
                    header_field(form.hostname, 255) + " " + header_field(form.app_name, 48) + " - " +
                    header_field(event.attribute("change"), 32) + " " + structured_data(event, body, form);
  std::string text = form.whole_event ? std::string(event.body) : summary(event, body);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  // Section 6.4: text in UTF-8 begins with a byte order mark. Pure ASCII needs none, and many tools would show it.
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii) text.insert(0, "\xef\xbb\xbf");
  const std::size_t used = out.size() + 1;
  const std::size_t left = form.max_bytes > used ? form.max_bytes - used : 0;
  constexpr std::string_view kCut = " [cut]";
  if (text.size() > left && left > kCut.size() + 3) {
    cut(text, left - kCut.size());
    text += kCut;
  } else {
    cut(text, left);
  }
  return text.empty() ? out : out + " " + text;
}

}  // namespace syslog_sink
