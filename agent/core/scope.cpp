// SPDX-License-Identifier: Apache-2.0
#include "core/scope.hpp"

#include <algorithm>

#include "core/value/value.hpp"

namespace driftd::core {
namespace {

std::vector<Glob> globs(const Value& settings, const char* name) {
  std::vector<Glob> out;
  const Value* list = settings.find(name);
  if (list == nullptr || list->array() == nullptr) return out;
  for (const auto& text : *list->array()) {
    if (text.string() != nullptr) out.push_back(Glob::of_name(*text.string()));
  }
  return out;
}

/// A backend's own provider never lists its registration, so `include` does not apply to it; only `exclude` does.
bool is_registration(const std::string& kind) { return kind == kRegistration; }

}  // namespace

std::string defined_in(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(std::string(kDefinedIn));
  return found == metadata.end() ? std::string() : found->second;
}

Scope Scope::of_settings(std::string_view settings_json) {
  Scope out;
  const auto settings = parse(settings_json);
  if (!settings) return out;
  out.include_ = globs(*settings, "include");
  out.exclude_ = globs(*settings, "exclude");
  return out;
}

bool Scope::wants(const ResourceId& id) const {
  if (is_own_kind(id.kind)) return true;  // the agent's pseudo-resources are always in scope
  const std::string whole = render(id);
  const auto covers = [&](const Glob& glob) { return glob.text() == id.kind || glob.matches(whole); };
  if (std::any_of(exclude_.begin(), exclude_.end(), covers)) return false;
  return is_registration(id.kind) || include_.empty() || std::any_of(include_.begin(), include_.end(), covers);
}

bool Scope::wants_kind(const std::string& kind) const {
  if (is_own_kind(kind)) return true;
  const auto all_of_it = [&](const Glob& glob) { return glob.text() == kind || glob.text() == kind + "/*"; };
  if (std::any_of(exclude_.begin(), exclude_.end(), all_of_it)) return false;
  const auto some_of_it = [&](const Glob& glob) {
    const std::string_view front = std::string_view(glob.text()).substr(0, glob.text().find('/'));
    const std::size_t star = front.find('*');  // `*` also matches `/`, so only the text before it belongs to the kind
    return star == std::string_view::npos ? front == kind : kind.starts_with(front.substr(0, star));
  };
  return is_registration(kind) || include_.empty() || std::any_of(include_.begin(), include_.end(), some_of_it);
}

}  // namespace driftd::core
