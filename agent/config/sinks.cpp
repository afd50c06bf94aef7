// SPDX-License-Identifier: Apache-2.0
#include "config/parts.hpp"
#include "config/secrets.hpp"

namespace driftd::config {
namespace {

const std::vector<std::string> kTypes = {"nats", "webhook", "notifications", "file", "stdout"};

void read_sink(Section section, const Node& node, const LoadOptions& options, const std::string& name, Config& config) {
  SinkSpec sink;
  sink.name = name;
  sink.at = node.at;
  if (section.find("type") == nullptr) {
    section.report().error(node.at, section.title() + " has no 'type'", one_of(kTypes));
  }
  sink.type = section.choice("type", "", kTypes);
  sink.drop_pending = section.boolean("drop_pending", false);
  Settings settings = SettingsReader(section.report(), options, "sink/" + name).read(node, {"type", "drop_pending"});
  sink.settings_json = core::render(settings.with_tokens);
  sink.secrets = std::move(settings.secrets);
  config.sinks.push_back(std::move(sink));
}

}  // namespace

void read_sinks(Section& root, const LoadOptions& options, Config& config) {
  const Node* sinks = root.find("sinks");
  if (sinks == nullptr) return;
  if (sinks->kind != Node::Kind::map) return root.wrong("sinks", *sinks, "a map of names to sinks");
  for (const auto& member : sinks->members) {
    const std::string title = "sink '" + member.key + "'";
    if (const std::string fault = name_fault(member.key); !fault.empty()) {
      root.report().error(member.at, "a sink cannot be named '" + member.key + "': " + fault, "letters, digits, - _ .");
    }
    if (member.value.kind != Node::Kind::map) {
      root.report().error(member.value.at, title + " has the wrong type", "a map with a 'type'", describe(member.value));
      continue;
    }
    read_sink(Section(root.report(), &member.value, "sinks.*", title), member.value, options, member.key, config);
  }
}

}  // namespace driftd::config
