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

bool is_sendable_url(const std::string& url) {
  const bool local = url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:");
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]%";
  const bool plain = url.find_first_not_of(kAllowed) == std::string::npos;
  return plain && (local || url.starts_with("https://")) && url.size() > std::string("https://").size() &&
         url.size() <= 200;
}

void check_actions(Section& links, const core::LinkSettings& read) {
  const std::vector<std::string> known = core::LinkSettings().actions;
  for (const auto& action : read.actions) {
    if (std::find(known.begin(), known.end(), action) != known.end()) continue;
    links.report().error(links.at("actions"), "a link cannot '" + action + "'", one_of(known));
  }
}

/// Whether the sinks exist and send messages is checked once they were read (check_links).
core::LinkSettings read_links(Section links) {
  core::LinkSettings out;
  out.base_url = links.text("base_url");
  while (out.base_url.ends_with('/')) out.base_url.pop_back();
  out.listen = links.text("listen", out.listen);
  out.sinks = links.texts("sinks");
  if (auto actions = links.texts("actions"); !actions.empty()) out.actions = std::move(actions);
  out.expire_after = read_time(links, "expire_after", out.expire_after, seconds(60));
  if (links.present() && !is_sendable_url(out.base_url)) {
    links.report().error(
        links.at("base_url"),
        links.title() + (out.base_url.empty() ? " has no 'base_url'" : " has a 'base_url' that cannot be used"),
        "https://HOST[/PATH] of the proxy in front of 'listen', without query; http only for "
        "127.0.0.1 and localhost");
  }
  if (links.present() && out.sinks.empty()) {
    links.report().error(links.at(), links.title() + " names no 'sinks'", "sinks: [NAME], whose messages have links");
  }
  if (!listens_on_loopback(out.listen)) {
    links.report().error(links.at("listen"), "'listen' of " + links.title() + " is not a loopback address",
                         "127.0.0.1:PORT or [::1]:PORT", "'" + out.listen + "'",
                         "let a proxy on this machine serve it to others");
  }
  check_actions(links, out);
  links.close();
  return out;
}

}  // namespace

void check_links(Section& root, const Config& config) {
  const auto& wanted = config.notifications.links.sinks;
  if (wanted.empty()) return;
  Section links = root.section("notifications").section("links");
  for (const auto& name : wanted) {
    const auto found =
        std::find_if(config.sinks.begin(), config.sinks.end(), [&](const auto& sink) { return sink.name == name; });
    const auto* webhook = found == config.sinks.end() ? nullptr : std::get_if<sinks::WebhookSettings>(&found->settings);
    if (found == config.sinks.end()) {
      links.report().error(links.at("sinks"), "there is no sink '" + name + "'", "a sink with a 'format'");
    } else if (webhook == nullptr || webhook->chat.format == sinks::ChatFormat::none) {
      links.report().error(links.at("sinks"), "sink '" + name + "' sends no messages for people",
                           "a sink with a 'format'");
    } else if (found->digests_only) {
      links.report().error(links.at("sinks"), "sink '" + name + "' gets no values, and the pages of links show them",
                           "events: whole, or no links for it");
    }
  }
}

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
  out.links = read_links(section.section("links"));
  section.close();
  return out;
}

}  // namespace driftd::config
