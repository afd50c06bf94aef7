// SPDX-License-Identifier: Apache-2.0
#include "config/places.hpp"

namespace driftd::config {
namespace {

using Places = std::map<std::string, Position>;

void add_members(const Node& node, const std::string& prefix, Places& out) {
  for (const auto& member : node.members) out.emplace(prefix + member.key, member.at);
}

void add_backend(const Node& backend, const std::string& node, Places& out) {
  const Node* name = backend.find("name");
  if (name == nullptr || name->kind != Node::Kind::scalar) return;
  for (const auto& title : {name->text, name->text + "-" + node}) {
    out.emplace("backends." + title, backend.at);
    add_members(backend, "backends." + title + ".", out);
  }
}

}  // namespace

std::map<std::string, Position> setting_positions(const Node& root, const std::string& node) {
  Places out;
  add_members(root, "", out);
  for (const auto& member : root.members) add_members(member.value, member.key + ".", out);
  if (const Node* backends = root.find("backends")) {
    for (const auto& backend : backends->items) add_backend(backend, node, out);
  }
  return out;
}

Position find_position(const std::map<std::string, Position>& places, const std::string& setting) {
  const auto find = [&](const std::string& name) {
    const auto at = places.find(name);
    return at == places.end() ? Position{} : at->second;
  };
  const Position own = find(setting);
  const std::size_t last = setting.rfind('.');
  if (own.line != 0 || last == std::string::npos) return own;
  const bool of_backend = setting.starts_with("backends.") && setting.find('.') != last;
  const Position inherited = of_backend ? find("defaults" + setting.substr(last)) : Position{};
  return inherited.line != 0 ? inherited : find(setting.substr(0, last));
}

}  // namespace driftd::config
