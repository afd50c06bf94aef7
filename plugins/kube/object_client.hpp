// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kube/api.hpp"
#include "kube/resource.hpp"

namespace driftd::kube {

/// What of an object a request changes.
enum class Part { kObject, kStatus };  ///< kStatus: its status subresource

/// Reads and writes single objects over a client of one thread. Failures of all functions: DENIED names the missing
/// right, NOT_FOUND (the object or its namespace), UNSUPPORTED (the server does not serve the type), CONFLICT (another
/// resourceVersion or uid, an object that exists already, or a field that another manager owns), INVALID (the schema or
/// an admission rule refuses it, with the server's text), THROTTLED, UNAVAILABLE, UNAUTHENTICATED.
class ObjectClient {
 public:
  using json = nlohmann::json;

  /// `api` must outlive it. `field_manager` is the name under which the server notes what this client writes.
  ObjectClient(sdk::Call& call, Api& api, std::string field_manager)
      : api_(api),
        client_(api.options(call)),
        field_manager_(std::move(field_manager)) {}

  /// Returns the object, or nullopt if the server says that it does not exist.
  std::optional<json> get(sdk::Call& call, const Resource& resource, const Place& place);
  /// Creates an object, in the namespace of its metadata, and returns it as it was stored.
  json create(sdk::Call& call, const Resource& resource, const json& object);
  /// Replaces an object that was read before: its resourceVersion must still be the stored one. Throws INVALID if the
  /// object has none, since the write would be blind.
  json replace(sdk::Call& call, const Resource& resource, const json& object, Part part = Part::kObject);
  /// Server-side apply: sets the fields that `object` names and gives up those that an earlier apply() of the same
  /// manager named and this one does not; creates the object if it does not exist. With `force` fields of other
  /// managers are taken over, else they are a CONFLICT.
  json apply(sdk::Call& call, const Resource& resource, const json& object, bool force);
  /// The same for its status, which is never created. With a resourceVersion in `object` that must still be the stored
  /// one.
  json apply_status(sdk::Call& call, const Resource& resource, const json& object, bool force);
  /// JSON merge patch: null removes a member.
  json merge(sdk::Call& call, const Resource& resource, const Place& place, const json& change);

  /// What must hold of an object that is deleted. Empty: anything.
  struct Preconditions {
    std::string uid, resource_version;
    std::string propagation{};  ///< Background, Foreground or Orphan; empty: the default of its type
  };
  /// Deletes an object. Returns false if it does not exist; one with finalizers is only marked and goes later.
  bool remove(sdk::Call& call, const Resource& resource, const Place& place, const Preconditions& must);

 private:
  /// A request that writes.
  struct Write {
    std::string method, verb;  ///< of HTTP, and as RBAC names the right
    std::string path, query;   ///< the query begins with `?` or is empty
    std::string content_type;
    const json& body;
  };
  http::Response send(sdk::Call& call, const Write& write);
  /// Sends it and returns the object that is stored now.
  json store(sdk::Call& call, const Resource& resource, const Place& place, const Write& write);
  json patch(sdk::Call& call, const Resource& resource, const json& object, bool force, Part part);

  Api& api_;
  http::Client client_;
  const std::string field_manager_;
};

/// Returns namespace and name of an object.
Place place_of(const nlohmann::json& object);

}  // namespace driftd::kube
