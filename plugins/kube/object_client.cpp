// SPDX-License-Identifier: Apache-2.0
#include "kube/object_client.hpp"

#include "kube/json_access.hpp"

namespace driftd::kube {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kApply = "application/apply-patch+yaml";  // JSON is YAML
constexpr const char* kMerge = "application/merge-patch+json";

std::string path_of(const Resource& resource, const Place& place, Part part) {
  return resource.path(place.space, place.name) + (part == Part::kStatus ? "/status" : "");
}

/// Returns refusal(), but a 404 that names an object is NOT_FOUND.
sdk::Failure write_refusal(const http::Response& response, const std::string& what, const Resource& resource,
                           const std::string& right) {
  sdk::Failure out = refusal(response, what, resource.kind, right);
  if (response.status == 404 && reason_of(response.body) == "NotFound") out.code = DRIFTD_NOT_FOUND;
  return out;
}

json parse_answer(const http::Response& response, const std::string& what, const Resource& resource) {
  json out = json::parse(response.body, nullptr, false);
  if (!out.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, what + ": the answer is not a JSON object", resource.kind);
  return out;
}

/// Returns the right to `verb`, of a subresource `update prismbackends.prism.io/status in all namespaces`.
std::string right_of(const Resource& resource, const Place& place, const std::string& verb, bool status) {
  const std::string out = resource.right(verb, place.space);
  if (!status) return out;
  const auto end = out.find(' ', verb.size() + 1);
  return out.substr(0, end) + "/status" + (end == std::string::npos ? "" : out.substr(end));
}

}  // namespace

Place place_of(const json& object) {
  return {text(object, {"metadata", "namespace"}), text(object, {"metadata", "name"})};
}

std::optional<json> ObjectClient::get(sdk::Call& call, const Resource& resource, const Place& place) {
  const std::string path = resource.path(place.space, place.name), what = "GET " + path;
  const http::Response response = send_request(call, api_, client_, path);
  if (response.status == 404 && reason_of(response.body) == "NotFound") return std::nullopt;
  if (!response.ok()) throw refusal(response, what, resource.kind, resource.right("get", place.space));
  return parse_answer(response, what, resource);
}

http::Response ObjectClient::send(sdk::Call& call, const Write& write) {
  return send_request(call, api_, client_, write.path + write.query, [&](http::Request& request) {
    request.method = write.method;
    request.headers.push_back("Content-Type: " + write.content_type);
    request.body = write.body.dump();
  });
}

json ObjectClient::store(sdk::Call& call, const Resource& resource, const Place& place, const Write& write) {
  const std::string what = write.method + " " + write.path;
  const http::Response response = send(call, write);
  const std::string right = right_of(resource, place, write.verb, write.path.ends_with("/status"));
  if (!response.ok()) throw write_refusal(response, what, resource, right);
  return parse_answer(response, what, resource);
}

json ObjectClient::create(sdk::Call& call, const Resource& resource, const json& object) {
  const Place place = place_of(object);
  const std::string path = resource.path(place.space);
  return store(call, resource, place, {"POST", "create", path, "?fieldManager=" + field_manager_, kJson, object});
}

json ObjectClient::replace(sdk::Call& call, const Resource& resource, const json& object, Part part) {
  const Place place = place_of(object);
  const std::string path = path_of(resource, place, part);
  if (text(object, {"metadata", "resourceVersion"}).empty()) {
    throw sdk::Failure(DRIFTD_INVALID, "PUT " + path + ": expected an object with the resourceVersion that was read",
                       resource.kind);
  }
  return store(call, resource, place, {"PUT", "update", path, "?fieldManager=" + field_manager_, kJson, object});
}

json ObjectClient::patch(sdk::Call& call, const Resource& resource, const json& object, bool force, Part part) {
  const Place place = place_of(object);
  const std::string query = "?fieldManager=" + field_manager_ + "&force=" + (force ? "true" : "false");
  return store(call, resource, place, {"PATCH", "patch", path_of(resource, place, part), query, kApply, object});
}

json ObjectClient::apply(sdk::Call& call, const Resource& resource, const json& object, bool force) {
  return patch(call, resource, object, force, Part::kObject);
}

json ObjectClient::apply_status(sdk::Call& call, const Resource& resource, const json& object, bool force) {
  return patch(call, resource, object, force, Part::kStatus);
}

json ObjectClient::merge(sdk::Call& call, const Resource& resource, const Place& place, const json& change) {
  const std::string path = resource.path(place.space, place.name);
  return store(call, resource, place, {"PATCH", "patch", path, "?fieldManager=" + field_manager_, kMerge, change});
}

bool ObjectClient::remove(sdk::Call& call, const Resource& resource, const Place& place, const Preconditions& must) {
  json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!must.uid.empty()) options["preconditions"]["uid"] = must.uid;
  if (!must.resource_version.empty()) options["preconditions"]["resourceVersion"] = must.resource_version;
  if (!must.propagation.empty()) options["propagationPolicy"] = must.propagation;
  const std::string path = resource.path(place.space, place.name);
  const http::Response response = send(call, {"DELETE", "delete", path, {}, kJson, options});
  if (response.status == 404 && reason_of(response.body) == "NotFound") return false;
  if (!response.ok()) throw write_refusal(response, "DELETE " + path, resource, resource.right("delete", place.space));
  return true;
}

}  // namespace driftd::kube
