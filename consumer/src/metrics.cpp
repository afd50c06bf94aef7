// SPDX-License-Identifier: Apache-2.0
#include "metrics.hpp"

#include <charconv>

namespace driftd::consumer {
namespace {

/// A label's value in Prometheus' text format.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

void PatternMetrics::add_backend(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  by_backend_.try_emplace(backend);
}
void PatternMetrics::event_received(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  const auto found = by_backend_.find(backend);  // a name that somebody else invents makes no series
  if (found != by_backend_.end()) ++found->second.events;
}
void PatternMetrics::reconnected(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  const auto found = by_backend_.find(backend);
  if (found != by_backend_.end()) ++found->second.reconnects;
}
void PatternMetrics::credential_rotated(std::chrono::nanoseconds took) {
  const std::lock_guard lock(mutex_);
  rotation_seconds_ = std::chrono::duration<double>(took).count();
}

std::string PatternMetrics::render() const {
  const std::lock_guard lock(mutex_);
  const std::string pattern = "{pattern=" + quoted(pattern_);
  std::string events =
      "# HELP prism_pattern_backend_event_received_total Events of a backend that this pattern received.\n"
      "# TYPE prism_pattern_backend_event_received_total counter\n";
  std::string reconnects =
      "# HELP prism_pattern_backend_reconnect_total Connections of slots to a backend that were replaced.\n"
      "# TYPE prism_pattern_backend_reconnect_total counter\n";
  for (const auto& [backend, counters] : by_backend_) {
    const std::string labels = pattern + ",backend=" + quoted(backend) + "} ";
    events += "prism_pattern_backend_event_received_total" + labels + std::to_string(counters.events) + "\n";
    reconnects += "prism_pattern_backend_reconnect_total" + labels + std::to_string(counters.reconnects) + "\n";
  }
  char seconds[64];  // not printf, whose decimal point depends on the locale
  const auto end = std::to_chars(seconds, seconds + sizeof seconds, rotation_seconds_, std::chars_format::fixed, 6).ptr;
  return events +
         "# HELP prism_pattern_credential_rotation_duration_seconds Time of the last rotation, from the event's "
         "arrival to "
         "its use in all slots.\n"
         "# TYPE prism_pattern_credential_rotation_duration_seconds gauge\n"
         "prism_pattern_credential_rotation_duration_seconds" +
         pattern + "} " + std::string(seconds, end) + "\n" + reconnects;
}

}  // namespace driftd::consumer
