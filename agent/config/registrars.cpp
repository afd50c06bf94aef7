// SPDX-License-Identifier: Apache-2.0
// Reads `spoken_by`: the sources that may report a backend's registration (ADR 0015).
#include <algorithm>

#include "config/parts.hpp"

namespace driftd::config {

std::vector<core::Registrar> read_registrars(Section& section) {
  std::vector<core::Registrar> out;
  for (const Node* item : section.items("spoken_by")) {
    Section registrar(section.report(), item, "backends[].spoken_by[]", "spoken_by of " + section.title());
    core::Registrar one;
    one.source = registrar.required_text(
        "source", "the name of the backend that reports it, such as a cluster or a Terraform state");
    const Node* where = registrar.find("namespace");
    if (where != nullptr)
      one.name_space = registrar.required_text("namespace", "a namespace; without the key: anywhere in the source");
    registrar.close();
    out.push_back(std::move(one));
  }
  return out;
}

void resolve_registrars(Report& report, const std::vector<const Node*>& items, const std::set<std::string>& names,
                        Config& config) {
  for (const Node* item : items) {
    const Node* list = item->find("spoken_by");
    if (list == nullptr) continue;
    for (const Node& registrar : list->items) {
      const Node* source = registrar.find("source");
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
    for (auto& registrar : spec.spoken_by) {
      const std::string here = registrar.source + "-" + config.agent.node;
      if (!runs(registrar.source) && runs(here)) registrar.source = here;
    }
  }
}

}  // namespace driftd::config
