// SPDX-License-Identifier: Apache-2.0
// Reads `spoken_by`: the sources that may report a backend's registration (ADR 0015).
#include <algorithm>

#include "config/parts.hpp"

namespace driftd::config {

std::vector<core::Registrar> read_speakers(Section& section) {
  std::vector<core::Registrar> out;
  for (const Node* item : section.items("spoken_by")) {
    Section speaker(section.report(), item, "backends[].spoken_by[]", "spoken_by of " + section.title());
    core::Registrar one;
    one.source =
        speaker.required_text("source", "the name of the backend that speaks, such as a cluster or a Terraform state");
    const Node* where = speaker.find("namespace");
    if (where != nullptr)
      one.name_space = speaker.required_text("namespace", "a namespace; without the key: anywhere in the source");
    speaker.close();
    out.push_back(std::move(one));
  }
  return out;
}

void resolve_speakers(Report& report, const std::vector<const Node*>& items, const std::set<std::string>& names,
                      Config& config) {
  for (const Node* item : items) {
    const Node* list = item->find("spoken_by");
    if (list == nullptr) continue;
    for (const Node& speaker : list->items) {
      const Node* source = speaker.find("source");
      if (source == nullptr || source->kind != Node::Kind::scalar || names.contains(source->text)) continue;
      report.error(source->at, "'spoken_by' names '" + source->text + "', which is not a backend of this file",
                   "the name of a backend of this file", "", suggest(source->text, {names.begin(), names.end()}));
    }
  }
  // A source that the file calls `cluster` may be `cluster-n1` on node n1.
  const auto runs = [&](const std::string& name) {
    return std::any_of(config.backends.begin(), config.backends.end(),
                       [&](const auto& other) { return other.name == name; });
  };
  for (auto& spec : config.backends) {
    for (auto& speaker : spec.spoken_by) {
      const std::string here = speaker.source + "-" + config.agent.node;
      if (!runs(speaker.source) && runs(here)) speaker.source = here;
    }
  }
}

}  // namespace driftd::config
