// SPDX-License-Identifier: Apache-2.0
#include "k8s/apply.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "common/attribute_path.hpp"
#include "common/shell_text.hpp"
#include "driftd/sdk/scope.hpp"
#include "k8s/attribute_edit.hpp"
#include "k8s/field_owners.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"
#include "k8s/object_patch.hpp"
#include "kube/outline.hpp"

namespace driftd::k8s {
namespace {

using common::refused;

std::string name_of(const sdk::Identity& id) { return id.kind + "/" + id.id; }

/// Returns true if `path` is `above` or below it. `above` may end with `**`.
bool lies_at(const common::AttributePath& path, std::string above) {
  const bool all = above == "**";
  if (above.ends_with(".**")) above.resize(above.size() - 3);
  if (all) return true;
  const auto front = common::parse_attribute_path(above);
  if (front.size() > path.size()) return false;
  return std::equal(front.begin(), front.end(), path.begin(), [](const auto& a, const auto& b) {
    return a.kind == b.kind && a.name == b.name && a.at == b.at && a.keys == b.keys;
  });
}

/// Returns why an attribute of the request cannot be put back, from what the record says of itself; empty if it can.
std::string hidden(const sdk::Record& record, const sdk::Apply& request) {
  for (const auto& change : request.changes) {
    const auto path = common::parse_attribute_path(change.path);
    for (const auto& unread : record.unread) {
      if (lies_at(path, unread.path)) return change.path + " cannot be set: " + unread.reason;
    }
    for (const auto& secret : record.sensitive) {
      if (lies_at(path, secret) || lies_at(common::parse_attribute_path(secret), change.path))
        return change.path + " cannot be set: it is or holds a secret, and secrets are never put back";
    }
  }
  return {};
}

void add_texts(const json* value, std::set<std::string>& out) {
  if (value == nullptr || value->is_null()) return;
  if (value->is_structured()) {
    for (const json& one : *value) add_texts(&one, out);
  } else {
    out.insert(value->is_string() ? value->get<std::string>() : value->dump());
  }
}

/// Returns the secrets of a record that the request does not say itself.
std::vector<std::string> secrets_of(const sdk::Record& record, const sdk::Apply& request) {
  const json body = json::parse(record.body);
  std::set<std::string> texts, said{std::string()};
  for (std::string path : record.sensitive) {
    if (path.ends_with(".**")) path.resize(path.size() - 3);
    add_texts(path == "**" ? &body : common::find_at(body, common::parse_attribute_path(path)), texts);
  }
  for (const auto& change : request.changes) {
    for (const auto* side : {&change.old_value, &change.new_value}) {
      const json value = common::parse_change_value(*side);
      add_texts(&value, said);
    }
  }
  std::vector<std::string> out;
  std::set_difference(texts.begin(), texts.end(), said.begin(), said.end(), std::back_inserter(out));
  return out;
}

/// The API leaves out a member that is false or empty: that it is absent is the same.
bool is_left_out(const json& value) {
  return value == json(false) || value == json("") || (value.is_structured() && value.empty());
}

std::vector<std::string> without(const json& body, const sdk::Apply& request, std::string sdk::Change::*side) {
  std::vector<std::string> out;
  for (const auto& change : request.changes) {
    const auto path = common::parse_attribute_path(change.path);
    const json value = common::parse_change_value(change.*side);
    const bool absent = is_left_out(value) && common::find_at(body, path) == nullptr;
    if (!absent && !common::holds_at(body, path, value)) out.push_back(change.path);
  }
  return out;
}

/// `deployments.apps`
std::string type_of(const Resource& resource) {
  std::string out = resource.plural;
  if (resource.base.starts_with("/apis/")) out += "." + resource.base.substr(6, resource.base.find('/', 6) - 6);
  return out;
}

std::string patch_command(const Resource& resource, const Place& place, const json& patch) {
  const std::string space = resource.namespaced ? " -n " + common::shell_word(place.space) : "";
  return "kubectl patch " + type_of(resource) + " " + common::shell_word(place.name) + space +
         " --type=json --field-manager=" + kFieldManager + " -p " + common::shell_word(patch.dump());
}

/// Returns the managers that keep their fields, with one field of each; empty if every owner may be overruled.
std::string protected_owners(const json& now, const json& wanted, const std::vector<std::string>& take_over) {
  std::string out;
  for (const auto& owner : owners_of_change(now, wanted)) {
    const auto matches = [&](const std::string& glob) { return sdk::glob_match(glob, owner.manager); };
    if (owner.manager == kFieldManager || std::any_of(take_over.begin(), take_over.end(), matches)) continue;
    out += (out.empty() ? "" : ", ") + owner.manager + " (" + owner.field + ")";
  }
  return out;
}

/// `metadata.managedFields` and what the server maintains are no part of a patch: they do not differ.
json tested(const json& object, json changes) {
  json out = json::array();
  for (const char* name : {"uid", "resourceVersion"}) {
    out.push_back(
        {{"op", "test"}, {"path", std::string("/metadata/") + name}, {"value", find(object, {"metadata", name})}});
  }
  for (auto& change : changes) out.push_back(std::move(change));
  return out;
}

const Resource& resource_of(const sdk::Identity& id, const std::vector<Resource>& resources) {
  for (const auto& resource : resources) {
    if (resource.kind == id.kind && !place_of(resource, id.id).name.empty()) return resource;
  }
  const bool known = std::any_of(resources.begin(), resources.end(), [&](const auto& r) { return r.kind == id.kind; });
  if (known) throw sdk::Failure(DRIFTD_NOT_FOUND, name_of(id) + ": no object can have this id", id.kind);
  throw sdk::Failure(DRIFTD_UNSUPPORTED, name_of(id) + ": its type is not served, or the settings leave it out",
                     id.kind);
}

}  // namespace

ObjectApplier::Target ObjectApplier::read(sdk::Call& call, const sdk::Identity& id, const Resource& resource) const {
  const Place place = place_of(resource, id.id);
  const std::string path = resource.path(place.space, place.name);
  const http::Response response = send_request(call, api_, client_, path);
  if (response.status == 404 && reason_of(response.body) == "NotFound")
    throw sdk::Failure(DRIFTD_NOT_FOUND, name_of(id) + " is gone; nothing was done", id.kind);
  if (!response.ok()) throw refusal(response, "GET " + path, id.kind, resource.right("get", place.space));
  auto [object, cut, why] = kube::parse_object(response.body);
  if (!object.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, "GET " + path + ": no JSON object", id.kind);
  sdk::Record record = map_or_unreadable(resource, object, why, settings_);
  return {resource, place, path, std::move(object), std::move(record)};
}

std::optional<sdk::Applied> ObjectApplier::decided(const Target& target, const sdk::Apply& request) const {
  const json body = json::parse(target.record.body);
  const bool readable = target.record.unread.empty() || target.record.unread.front().path != "**";
  if (readable && without(body, request, &sdk::Change::new_value).empty()) {
    sdk::Applied out;
    out.version = target.record.version;
    out.text = "every value is there already";
    return out;
  }
  if (!request.dry_run) {
    if (auto done = keys_.find(request)) return done;
  }
  const std::string& version = target.record.version;
  if (!request.expected_version.empty() && request.expected_version != version) {
    throw sdk::Failure(DRIFTD_CONFLICT, name_of(request.id) + " was judged at resourceVersion " +
                                            request.expected_version + " and is at " + version +
                                            " now; nothing was done");
  }
  if (const std::string why = hidden(target.record, request); !why.empty())
    return refused(name_of(request.id) + ": " + why);
  const auto moved = without(body, request, &sdk::Change::old_value);
  if (moved.empty()) return std::nullopt;
  throw sdk::Failure(DRIFTD_CONFLICT,
                     name_of(request.id) + ": " + moved.front() + " changed since it was judged; nothing was done");
}

sdk::Applied ObjectApplier::refusal_outcome(sdk::Call& call, const Target& target,
                                            const http::Response& response) const {
  const std::string name = name_of({target.record.kind, target.record.id}), message = message_of(response.body);
  if (response.status == 404) throw sdk::Failure(DRIFTD_NOT_FOUND, name + " is gone; nothing was done");
  if (response.status == 403) {
    const std::string right = target.resource.right("patch", target.place.space);
    sdk::Applied out = refused(name + ": the right to " + right +
                               " is missing, or an admission rule refuses it; nothing was changed: " + message);
    out.details["right"] = right;
    return out;
  }
  if (response.status == 409 || response.status == 422) {  // 422: also a test of the patch that failed
    const Target now = read(call, {target.record.kind, target.record.id}, target.resource);
    if (response.status == 409 || now.record.version != target.record.version)
      throw sdk::Failure(DRIFTD_CONFLICT, name + " changed while it was being put back; nothing was done");
  }
  if (response.status >= 500 || response.status == 429 || response.status == 401)
    throw refusal(response, "PATCH " + target.path, target.record.kind, {});
  return refused(name + ": the API server refuses the values; nothing was changed: " + message);
}

sdk::Applied ObjectApplier::patch(sdk::Call& call, const Target& target, const sdk::Apply& request,
                                  const json& wanted) {
  const ListShape shape = ListShape::of(target.resource);
  const json changes = patch_between(target.object, wanted, shape), undo = patch_between(wanted, target.object, shape);
  for (const auto& record : {target.record, map_object(target.resource, wanted, settings_)}) {
    const auto secrets = secrets_of(record, request);
    if (!tells(changes, secrets) && !tells(undo, secrets)) continue;
    return refused(name_of(request.id) +
                   ": the change cannot be said without a secret that stands beside it; put it back by hand; nothing "
                   "was changed");
  }
  const std::string query = std::string("?fieldManager=") + kFieldManager + "&fieldValidation=Strict" +
                            (request.dry_run ? "&dryRun=All" : "");
  const http::Response response = send_request(call, api_, client_, target.path + query, [&](http::Request& to) {
    to.method = "PATCH";
    to.headers.push_back("Content-Type: application/json-patch+json");
    to.body = tested(target.object, changes).dump();
  });
  if (!response.ok()) return refusal_outcome(call, target, response);
  sdk::Applied out;
  out.commands.push_back(patch_command(target.resource, target.place, changes));
  out.undo.push_back(patch_command(target.resource, target.place, undo));
  out.changed = !request.dry_run;
  auto [object, cut, why] = kube::parse_object(response.body);
  const sdk::Record now = map_or_unreadable(target.resource, object, why, settings_);
  out.version = request.dry_run ? std::string() : now.version;
  const auto other = without(json::parse(now.body), request, &sdk::Change::new_value);
  if (!other.empty()) {
    out.outcome = DRIFTD_APPLY_FAILED;
    out.text = name_of(request.id) + ": the cluster (an admission webhook or a default) makes another value of " +
               other.front() + (request.dry_run ? "; nothing was changed" : "");
    if (!request.dry_run) out.left = other;
    return out;
  }
  if (!request.dry_run) keys_.remember(request, out);
  return out;
}

sdk::Applied ObjectApplier::apply(sdk::Call& call, const sdk::Apply& request, const std::vector<Resource>& resources) {
  if (request.changes.empty() || request.key.empty())
    throw sdk::Failure(DRIFTD_INVALID, "apply: expected at least one change and an idempotency key");
  for (const auto& [kind, why] : {std::pair{kHelmRelease, "changes by helm only: helm rollback"},
                                  std::pair{kRegistration, "is what other objects define: put those back"}}) {
    if (request.id.kind == kind) return refused(name_of(request.id) + " cannot be set: it " + why);
  }
  const Target target = read(call, request.id, resource_of(request.id, resources));
  if (auto out = decided(target, request)) return *out;
  json wanted;
  try {
    wanted = wanted_object(target.resource, target.object, settings_, request.changes);
  } catch (const common::CannotSet& why) {
    return refused(name_of(request.id) + ": " + why.what());
  }
  if (const std::string owners = protected_owners(target.object, wanted, settings_.take_over); !owners.empty()) {
    sdk::Applied out =
        refused(name_of(request.id) +
                ": it would overrule field managers that settings.apply.take_over does not name: " + owners +
                "; nothing was changed");
    out.details["conflict"] = owners;
    return out;
  }
  return patch(call, target, request, wanted);
}

}  // namespace driftd::k8s
