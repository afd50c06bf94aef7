// SPDX-License-Identifier: Apache-2.0
#include "controller/cloud_event.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

namespace driftd::controller {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// How many bytes the character of UTF-8 at `at` has; 0 if it is not valid (RFC 3629, table in section 4).
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at), second = byte(at + 1);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  const unsigned min = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned max = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (second < min || second > max) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  return size;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_at(text, at);
    const char c = text[at];
    if (size == 0) {
      out += "\\ufffd";
    } else if (size == 1 && (c == '"' || c == '\\')) {
      out += {'\\', c};
    } else if (size == 1 && static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += text.substr(at, size);
    }
    at += std::max<std::size_t>(size, 1);
  }
  return out + '"';
}

std::string member(std::string_view name, std::string_view value) { return quoted(name) + ":" + quoted(value); }

std::string render_time(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(ms);
  const std::time_t whole = seconds.count();
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char date[32], out[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(out, sizeof out, "%s.%03dZ", date, static_cast<int>((ms - seconds).count()));
  return out;
}

}  // namespace

ChangeEvent event_of(const Change& change, std::string id, std::chrono::system_clock::time_point time) {
  const std::string kind = in_lower_case(change.resource.kind);
  ChangeEvent out;
  out.id = std::move(id);
  out.type = kind + "." + in_lower_case(render(change.type));
  out.source = "watcher/" + kind;
  out.subject = render(change.resource.key);
  out.time = time;
  out.change = change;
  return out;
}

std::string render_data(const ChangeEvent& event) {
  const ResourceMeta& of = event.change.resource;
  return "{" + member("resourceUid", of.uid) + "," + member("apiVersion", of.api_version) + "," +
         member("kind", of.kind) + "," + member("changeType", render(event.change.type)) +
         ",\"generation\":" + std::to_string(of.generation) +
         ",\"observedGeneration\":" + (of.observed_generation ? std::to_string(*of.observed_generation) : "null") + "}";
}

std::string render(const ChangeEvent& event) {
  return R"({"specversion":"1.0",)" + member("id", event.id) + "," + member("source", event.source) + "," +
         member("type", event.type) + "," + member("subject", event.subject) + "," +
         member("time", render_time(event.time)) + R"(,"datacontenttype":"application/json","data":)" +
         render_data(event) + "}";
}

}  // namespace driftd::controller
