// SPDX-License-Identifier: Apache-2.0
#include "k8s/mapping.hpp"

#include "common/bounded_json.hpp"
#include "common/secret_text.hpp"
#include "common/utf8_text.hpp"

#include <algorithm>
#include <array>

#include "driftd/sdk/scope.hpp"
#include "k8s/exceptions.hpp"
#include "k8s/json_access.hpp"
#include "k8s/list_types.hpp"
#include "k8s/rest.hpp"
#include "kube/base64.hpp"

namespace driftd::k8s {
namespace {

json chosen(const json& all, const std::vector<std::string>& globs) {
  json out = json::object();
  if (!all.is_object()) return out;
  for (const auto& [name, value] : all.items()) {
    const auto matches = [&name = name](const auto& glob) { return sdk::glob_match(glob, name); };
    if (std::any_of(globs.begin(), globs.end(), matches)) out[name] = value;
  }
  return out;
}

void add_metadata(const json& object, sdk::Record& record) {
  const Writer writer = last_writer(object);
  auto& out = record.metadata;
  out["namespace"] = text(object, {"metadata", "namespace"});
  out["name"] = text(object, {"metadata", "name"});
  out["resource_version"] = record.version;
  out["manager"] = writer.manager;
  out["operation"] = writer.operation;
  out["time"] = writer.time;
  std::erase_if(out, [](const auto& item) { return item.second.empty(); });
}

std::string origin_of(const Resource& resource) {
  std::string out = "kubernetes-" + (resource.custom != nullptr ? resource.object : resource.kind);
  std::replace(out.begin(), out.end(), '_', '-');
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out == "kubernetes-prism-backend" ? "prism-backend" : out;
}

sdk::Record begin(const Resource& resource, const json& object) {
  sdk::Record out;
  out.kind = resource.kind;
  out.id = resource.id(text(object, {"metadata", "namespace"}), text(object, {"metadata", "name"}));
  out.external_name = text(object, {"metadata", "uid"});
  out.version = text(object, {"metadata", "resourceVersion"});
  out.origin = origin_of(resource);
  out.schema_revision = revision_of(resource.kind);
  return out;
}

/// Fills body and status from the whole object (rest.hpp): what named attributes say, and all the rest.
void map_body(const Resource& resource, const json& object, json whole, const Settings& settings, const Parts& to) {
  const std::string& kind = resource.kind;
  if (kind == kObject || kind == kPrismBackend) return map_custom(resource, object, std::move(whole), to);
  if (kind == "deployment" || kind == "stateful_set" || kind == "daemon_set") {
    map_workload(object, settings, to.body, to.status, to.record);
    return add_workload_rest(std::move(whole), to.body, to.record);
  }
  if (kind == kSecret) map_secret(object, to.body);
  if (kind == "config_map") map_config_map(object, to.body, to.record);
  if (kind == "service") map_service(object, settings, to.body, to.status);
  if (kind == "endpoint_slice") map_endpoint_slice(object, to.body, to.status);
  if (kind == "ingress") map_ingress(object, to.body);
  if (kind == "mutating_webhook_configuration") add_order(list(object, {"webhooks"}), "webhook_order", to.body);
  if (kind == kJob) add_init_order(find(object, {"spec", "template", "spec"}), to.body);
  if (kind == kCronJob) add_init_order(find(object, {"spec", "jobTemplate", "spec", "template", "spec"}), to.body);
  add_rest(resource, std::move(whole), to.body, to.record);
}

/// Adds labels or annotations. The body of a custom kind is its spec, which may have a member of that name.
void add_chosen(const json& whole, const char* name, const std::vector<std::string>& globs, const Parts& to) {
  json out = chosen(find(whole, {"metadata", name}), globs);
  if (!out.empty()) add_members({{name, std::move(out)}}, to.body, {}, to.record);
}

}  // namespace

Writer last_writer(const json& object) {
  Writer out;
  for (const auto& field : list(object, {"metadata", "managedFields"})) {
    const std::string when = text(field, {"time"});  // RFC 3339 in UTC: sorts as text
    if (text(field, {"subresource"}) == "status" || when < out.time) continue;
    out = {text(field, {"manager"}), text(field, {"operation"}), when};
  }
  return out;
}

json decoded_data(const json& data) {
  json out = json::object();
  if (!data.is_object()) return out;
  for (const auto& [key, value] : data.items()) {
    if (!value.is_string()) continue;
    auto raw = kube::decode_base64(value.get_ref<const std::string&>());
    if (raw && common::is_utf8(*raw)) {
      out[key] = std::move(*raw);
    } else {
      out[key] = {{"base64", value}};  // never the same as a text
    }
  }
  return out;
}

std::string member_path(const std::string& attribute, const std::string& name) {
  return attribute + "[" + json(name).dump() + "]";
}

void mark_secrets(const json& value, const std::string& path, sdk::Record& record) {
  if (value.is_string() && common::holds_secret(value.get_ref<const std::string&>())) record.sensitive.push_back(path);
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) mark_secrets(member, member_path(path, name), record);
  }
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) mark_secrets(value[i], path + "[" + std::to_string(i) + "]", record);
  }
}

std::uint32_t revision_of(const std::string& kind) {
  static const std::map<std::string, std::uint32_t> kRevisions = {
      {kSecret, 2},       {"config_map", 3}, {"service", 3},      {"endpoint_slice", 2},
      {"ingress", 2},     {"deployment", 4}, {"stateful_set", 4}, {"daemon_set", 4},
      {kPrismBackend, 2}, {kObject, 2},      {kHelmRelease, 3}};
  const auto found = kRevisions.find(kind);
  return found == kRevisions.end() ? 1 : found->second;
}

sdk::Record map_object(const Resource& resource, const json& object, const Settings& settings) {
  if (has_hollow(resource.kind, object)) {
    json rest = object;
    remove_hollow(resource.kind, rest);
    return map_object(resource, rest, settings);
  }
  sdk::Record record = begin(resource, object);
  json body = json::object(), status = json::object();
  json whole = whole_of(resource, object);
  const json metadata = {{"metadata", find(whole, {"metadata"})}};
  const Parts to{body, status, record};
  map_body(resource, object, std::move(whole), settings, to);
  add_chosen(metadata, "labels", settings.labels, to);
  std::vector<std::string> annotations = settings.annotations;  // and those on which an exception depends
  annotations.insert(annotations.end(), injectors().begin(), injectors().end());
  add_chosen(metadata, "annotations", annotations, to);
  record.body = body.dump();
  record.status = status.dump();
  common::bound_paths(record.sensitive);
  add_metadata(object, record);
  return record;
}

sdk::Record unreadable(const Resource& resource, const json& object, const std::string& reason) {
  sdk::Record record = begin(resource, object);
  record.unread.push_back({"**", DRIFTD_CORRUPT, reason});
  add_metadata(object, record);
  return record;
}

sdk::Record map_or_unreadable(const Resource& resource, const json& object, const std::string& cut,
                              const Settings& settings) {
  if (!cut.empty()) return unreadable(resource, object, cut);
  if (!resource.no_lists.empty()) {
    sdk::Record record = unreadable(resource, object, resource.no_lists);
    record.unread.front().code = DRIFTD_UNSUPPORTED;  // of its type, not of this object
    return record;
  }
  try {
    return map_object(resource, object, settings);
  } catch (const json::exception&) {  // its text could quote a value
    return unreadable(resource, object, "it is not of the form of its type");
  }
}

sdk::Record tombstone(const Resource& resource, const json& object) {
  sdk::Record record = begin(resource, object);
  record.tombstone = true;
  add_metadata(object, record);
  return record;
}

void map_secret(const json& object, json& body) {
  put(body, "type", find(object, {"type"}));
  put(body, "immutable", find(object, {"immutable"}));
  body["data"] = decoded_data(find(object, {"data"}));
}

void map_config_map(const json& object, json& body, sdk::Record& record) {
  put(body, "immutable", find(object, {"immutable"}));
  const json& data = find(object, {"data"});
  body["data"] = data.is_object() ? data : json::object();
  mark_secrets(body["data"], "data", record);
  const json& binary = find(object, {"binaryData"});
  if (binary.is_object()) body["binary_data"] = binary;
}

namespace {

/// The compared part of the object is missing. An empty body would wrongly equal every other `{}`.
void nothing_to_compare(sdk::Record& record, const std::string& path, const std::string& reason) {
  record.unread.push_back({path, DRIFTD_UNSUPPORTED, reason});
}

/// Returns the value at `pointer` (`/spec/ports/0`) with its lists in the form that they mean.
json shaped_at(const Resource& resource, const json& value, const std::string& pointer) {
  if (!resource.lists) return value;
  std::vector<std::string> path;
  for (std::size_t from = 1; from <= pointer.size();) {
    const std::size_t slash = std::min(pointer.find('/', from), pointer.size());
    path.push_back(pointer.substr(from, slash - from));
    from = slash + 1;
  }
  return resource.lists->shaped_at(value, resource.object, path);
}

}  // namespace

void map_custom(const Resource& resource, const json& object, json whole, const Parts& to) {
  const json& state = find(object, {"status"});
  if (state.is_object()) to.status = state;
  if (resource.custom == nullptr || resource.custom->fields.empty()) {
    whole.erase("metadata");
    if (whole.empty()) nothing_to_compare(to.record, "**", "it has nothing but metadata and status");
    if (find(whole, {"spec"}).is_object()) {
      add_members(std::move(whole["spec"]), to.body, {}, to.record);
      whole.erase("spec");
    }
    return add_members(std::move(whole), to.body, {}, to.record);
  }
  for (const auto& [name, path] : resource.custom->fields) {
    std::string pointer = "/";
    for (const char c : path) pointer += c == '.' || c == '[' ? '/' : c;
    std::erase(pointer, ']');
    const json::json_pointer where(pointer);
    const std::string first = path.substr(0, path.find_first_of(".["));
    if (object.contains(where))
      add_members({{name, shaped_at(resource, object.at(where), pointer)}}, to.body, {}, to.record);
    else if (!object.contains(first))
      nothing_to_compare(to.record, name, "the object has no `" + first + "`, where settings.objects looks for it");
  }
}

}  // namespace driftd::k8s
