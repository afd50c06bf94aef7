// SPDX-License-Identifier: Apache-2.0
#include "k8s/resource_versions.hpp"

#include <nlohmann/json.hpp>

#include "k8s/kinds.hpp"

namespace driftd::k8s {

using nlohmann::json;

std::string version_key(const Resource& resource, const std::string& space) {
  return resource.kind + "|" + resource.plural + "|" + space;
}

std::string render_cursor(const ResourceVersions& versions, const std::string& scope) {
  return json{{"v", 1}, {"scope", scope}, {"at", versions}}.dump();
}

std::optional<ResourceVersions> parse_cursor(const std::string& cursor, const std::string& scope) {
  const json parsed = json::parse(cursor, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  try {
    if (parsed.at("v") != 1 || parsed.at("scope") != scope) return std::nullopt;
    return parsed.at("at").get<ResourceVersions>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

void ListCache::store(List list) {
  const std::lock_guard lock(mutex_);
  if (list.sent <= forgotten_) return;
  list_ = std::move(list);
}

std::optional<ListCache::List> ListCache::last() const {
  const std::lock_guard lock(mutex_);
  return list_;
}

void ListCache::forget() {
  const std::lock_guard lock(mutex_);
  list_.reset();
  forgotten_ = Clock::now();
}

void ListCache::set_watch(std::optional<Clock::time_point> since, const std::string& scope) {
  const std::lock_guard lock(mutex_);
  since_ = since;
  scope_ = scope;
}

bool ListCache::scope_changed(const std::string& scope) const {
  const std::lock_guard lock(mutex_);
  return list_ && list_->scope != scope;
}

bool ListCache::is_current(const std::string& cursor) const {
  const std::lock_guard lock(mutex_);
  const bool known = list_ && since_ && !cursor.empty();
  return known && list_->cursor == cursor && list_->scope == scope_ && list_->sent >= *since_;
}

}  // namespace driftd::k8s
