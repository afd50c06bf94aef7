// SPDX-License-Identifier: Apache-2.0
// The subject of an event, such as `backend.orders-db.credentials.rotated`, and the names that may be in it. Its
// last part is StoredEvent::what; for drifts it comes from event_drift.cpp.
#include "base/escape.hpp"
#include "core/event/event.hpp"

namespace driftd::core {
namespace {

bool plain(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void escape(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789ABCDEF";
  out += {'=', kHex[c >> 4], kHex[c & 15]};
}

}  // namespace

bool is_reserved_name(std::string_view name) { return name == "type" || name == "source"; }

std::string invalid_name_reason(std::string_view name) {
  if (is_reserved_name(name)) return "the name is reserved (subjects backend.type.… and backend.source.…)";
  if (name.size() > 128) return "it is longer than 128 bytes";
  if (name == "." || name == "..") return "it names a folder";
  for (const char c : name) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F) return "it contains a space or control character";
    if (c == '/' || c == '*' || c == '>') return std::string("it contains '") + c + "'";
  }
  if (escaped(name) != name) {
    return "it contains a control character, a mark of the writing direction, or bytes that are not UTF-8";
  }
  return "";
}

std::string subject_token(std::string_view name) {
  if (name.empty()) return "=";  // no other name gives this: an escaping `=` is followed by two hex digits
  std::string out;
  for (const char c : name) {
    if (plain(static_cast<unsigned char>(c))) {
      out += c;
    } else {
      escape(out, static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string subject_of(const StoredEvent& event) {
  if (event.agent_event) return "driftd.agent." + subject_token(event.backend) + "." + event.what;
  std::string name = subject_token(event.backend);
  if (is_reserved_name(event.backend)) {
    std::string first;
    escape(first, static_cast<unsigned char>(name[0]));
    name = first + name.substr(1);
  }
  return "backend." + name + "." + event.what;
}

}  // namespace driftd::core
