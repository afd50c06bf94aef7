// SPDX-License-Identifier: Apache-2.0
#include "operator/release_view.hpp"

#include <charconv>

#include "base/escape.hpp"
#include "base/log.hpp"
#include "k8s/helm.hpp"
#include "kube/json_access.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

/// The values that name parts of a release.
json naming_values(const json& values) {
  json out = json::object();
  for (const char* name : {"fullnameOverride", "nameOverride", "existingSecret"}) {
    const std::string text = kube::text(values, {name});
    if (!text.empty()) out[name] = text;
  }
  for (const char* name : {"existingSecret", "existingPasswordSecret"}) {
    const std::string text = kube::text(values, {"auth", name});
    if (!text.empty()) out["auth"][name] = text;
  }
  return out;
}

/// Unpacks a revision. Between two revisions there is a moment in which the former is superseded and the next one not
/// yet deployed, so a superseded one counts, too.
std::optional<Release> unpack(const json& secret, const controller::Key& key) {
  json as_deployed = secret;
  as_deployed["metadata"]["labels"]["status"] = "deployed";
  k8s::HelmReleases one;
  one.add(as_deployed);
  std::vector<sdk::Diagnostic> diagnostics;
  const auto records = one.records(diagnostics, 0);
  for (const auto& each : diagnostics) {
    log::room("operator").warn("Helm release {} cannot be read: {}", escaped(render(key)), escaped(each.text));
  }
  if (records.empty() || !diagnostics.empty()) return std::nullopt;
  const json body = json::parse(records.front().body, nullptr, false);
  Release out;
  out.space = key.name_space;
  out.name = key.name;
  out.chart = kube::text(body, {"chart"});
  out.version = kube::text(body, {"chart_version"});
  out.values = naming_values(kube::find(body, {"values"}));
  return out;
}

}  // namespace

std::optional<controller::Key> ReleaseView::observe(const json& secret, bool deleted) {
  const std::string space = kube::text(secret, {"metadata", "namespace"}),
                    name = kube::text(secret, {"metadata", "name"});
  const std::lock_guard lock(mutex_);
  if (deleted) {  // its labels may not be known any more
    for (auto& [key, revisions] : releases_) {
      if (key.name_space != space || revisions.erase(name) == 0) continue;
      const controller::Key out = key;
      if (revisions.empty()) releases_.erase(out);
      return out;
    }
    return std::nullopt;
  }
  const std::string id = k8s::release_id(secret), number = kube::text(secret, {"metadata", "labels", "version"});
  if (id.empty()) return std::nullopt;
  const controller::Key key{space, id.substr(space.size() + 1)};
  Revision revision;
  revision.status = kube::text(secret, {"metadata", "labels", "status"});
  std::from_chars(number.data(), number.data() + number.size(), revision.number);
  Revision& known = releases_[key][name];
  const bool was_deployed = revision.status == "deployed" || revision.status == "superseded";
  if (was_deployed && known.release) {
    revision.release = std::move(known.release);  // a revision never changes but for its status
  } else if (was_deployed) {
    revision.release = unpack(secret, key);
  }
  known = std::move(revision);
  return key;
}

std::optional<Release> ReleaseView::find(const controller::Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = releases_.find(key);
  if (found == releases_.end()) return std::nullopt;
  const Revision* best = nullptr;
  for (const auto& [name, revision] : found->second) {
    if (revision.status == "uninstalling" || revision.status == "uninstalled") return std::nullopt;
    if (!revision.release) continue;
    const bool better = best == nullptr || (revision.status == "deployed" && best->status != "deployed") ||
                        (revision.status == best->status && revision.number > best->number);
    if (better) best = &revision;
  }
  return best == nullptr ? std::nullopt : best->release;
}

bool ReleaseView::is_unreadable(const controller::Key& key) const {
  if (find(key)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = releases_.find(key);
  if (found == releases_.end()) return false;
  bool was_deployed = false;
  for (const auto& [name, revision] : found->second) {
    if (revision.status == "uninstalling" || revision.status == "uninstalled") return false;
    was_deployed = was_deployed || revision.status == "deployed" || revision.status == "superseded";
  }
  return was_deployed;
}

std::vector<controller::Key> ReleaseView::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<controller::Key> out;
  for (const auto& [key, revisions] : releases_) out.push_back(key);
  return out;
}

}  // namespace driftd::op
