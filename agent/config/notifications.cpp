// SPDX-License-Identifier: Apache-2.0
// Reads the section `notifications`.
#include <algorithm>

#include "config/parts.hpp"

namespace driftd::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

seconds read_time(Section& section, const char* key, seconds fallback, seconds lowest) {
  return std::chrono::duration_cast<seconds>(
      section.duration(key, milliseconds(fallback), milliseconds(lowest), milliseconds(hours(30 * 24))));
}

bool is_group(const std::string& by) {
  return by == "backend" || by == "kind" || by == "class" || (by.starts_with("label:") && by.size() > 6);
}

}  // namespace

core::NotifySettings read_notifications(Section section) {
  core::NotifySettings out;
  out.on = section.present();
  if (auto by = section.texts("group_by"); !by.empty()) out.group_by = std::move(by);
  const auto wrong = std::find_if_not(out.group_by.begin(), out.group_by.end(), is_group);
  if (wrong != out.group_by.end()) {
    section.report().error(section.at("group_by"), "drifts cannot be grouped by '" + *wrong + "'",
                           "backend, kind, class, or label:NAME");
  }
  out.group_wait = read_time(section, "group_wait", out.group_wait, seconds(0));
  out.group_interval = read_time(section, "group_interval", out.group_interval, seconds(1));
  out.repeat = read_time(section, "repeat", out.repeat, seconds(0));
  out.escalate_after = read_time(section, "escalate_after", out.escalate_after, seconds(0));
  out.listed = static_cast<std::size_t>(section.integer("listed", 20, 1, 100));
  out.max_per_hour = static_cast<std::size_t>(section.integer("max_per_hour", 20, 1, 1'000));
  section.close();
  return out;
}

}  // namespace driftd::config
