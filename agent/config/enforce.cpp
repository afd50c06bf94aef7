// SPDX-License-Identifier: Apache-2.0
// Reads `enforce`: of the whole agent, and of a backend.
#include "config/parts.hpp"

namespace driftd::config {
namespace {

using std::chrono::seconds;

seconds read_seconds(Section& section, std::string_view key, seconds fallback) {
  constexpr std::chrono::milliseconds kMax{30ll * 86'400'000};
  return std::chrono::duration_cast<seconds>(section.duration(key, fallback, std::chrono::milliseconds(0), kMax));
}

void read_windows(Section& section, std::vector<core::MaintenanceWindow>& to) {
  if (section.find("windows") == nullptr) return;
  to.clear();
  for (const auto& text : section.texts("windows")) {
    auto window = core::parse_window(text);
    if (window)
      to.push_back(std::move(*window));
    else
      section.report().error(section.at("windows"), window.error().message);
  }
}

/// What both sections have.
void read_brakes(Section& section, core::EnforceSettings& to) {
  to.minimum_age = read_seconds(section, "minimum_age", to.minimum_age);
  to.per_cycle = static_cast<int>(section.integer("per_cycle", to.per_cycle, 1, 10'000));
  to.per_hour = static_cast<int>(section.integer("per_hour", to.per_hour, 1, 100'000));
  read_windows(section, to.windows);
}

}  // namespace

Enforce read_enforce(Section section, const Agent& agent) {
  Enforce out;
  out.settings.allowed_globally = section.boolean("enabled", false);
  out.off_file = section.text("off_file");
  if (out.off_file.empty()) out.off_file = agent.data_dir / "enforce.off";
  out.settings.owner = section.text("owner");
  if (out.settings.owner.empty()) out.settings.owner = agent.cluster + "/" + agent.name;
  read_brakes(section, out.settings);
  section.close();
  return out;
}

core::EnforceSettings read_backend_enforce(Section& backend, core::EnforceSettings from) {
  const Node* node = backend.find("enforce");
  if (node == nullptr) return from;
  if (node->kind == Node::Kind::scalar) {
    from.allowed_here = backend.boolean("enforce", false);
    return from;
  }
  Section section = backend.section("enforce");
  from.allowed_here = section.boolean("enabled", true);
  read_brakes(section, from);
  section.close();
  return from;
}

}  // namespace driftd::config
