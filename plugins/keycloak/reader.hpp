// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keycloak/api.hpp"
#include "keycloak/index.hpp"
#include "keycloak/mapping.hpp"
#include "keycloak/settings.hpp"

namespace driftd::keycloak {

/// A resource and the key by which events name it: its UUID, or what it has instead.
struct Found {
  std::string uuid;
  sdk::Record record;
};
using Emit = std::function<bool(Found)>;  ///< returns false if the host asks to stop

/// A realm before anything of it is listed.
struct RealmView {
  std::string name, uuid;
  nlohmann::json representation;  ///< null if it could not be read
  std::int64_t sent_ns = 0;
  bool events_enabled = false;
  std::chrono::milliseconds expiration{0};  ///< how long admin events are kept; 0: for ever
};

/// Returns the path of a resource's representation below its realm: `/clients/UUID`. `uuid` is the key by which events
/// name it. Empty for the realm itself. Pure.
std::string path_by_uuid(const std::string& kind, const std::string& uuid);

/// Reads kinds through the admin API. Lives for one call; `call`, `api`, `settings` and `index` must outlive it.
/// Everything throws as AdminApi, and DENIED with the missing role.
class Reader {
 public:
  Reader(sdk::Call& call, AdminApi& api, const Settings& settings, Index& index)
      : call_(call),
        api_(api),
        settings_(settings),
        index_(index) {}

  /// Returns the names of the realms: those of the settings, or all that the account may list.
  std::vector<std::string> realm_names();
  /// Reads one realm. Empty if it does not exist. Throws DENIED without `view-realm`.
  std::optional<RealmView> realm(const std::string& name);
  /// Makes the record of a realm. `state` lacks the default client scopes, which are read here.
  sdk::Record realm_record(const RealmView& view, RealmState state);

  /// Emits every resource of the kind (not `realm`) in one realm, and puts their UUIDs into the index. Returns false if
  /// the host asked to stop. Throws UNAVAILABLE if the list kept changing while it was read.
  bool list(const std::string& kind, const std::string& realm, const Emit& emit);
  /// Emits the roles of one client.
  bool client_roles(const std::string& realm, const std::string& uuid, const std::string& client, const Emit& emit);

  /// Reads one resource by its UUID, or by its name where its kind has none. Empty if it is gone.
  std::optional<Found> by_uuid(const std::string& kind, const std::string& realm, const std::string& uuid);
  /// Returns the client with this clientId; empty if there is none.
  std::optional<nlohmann::json> client_named(const std::string& realm, const std::string& client);
  /// Gets a path below the realm. Throws for every status but 2xx; 404 is NOT_FOUND.
  Answer need(const std::string& kind, const std::string& realm, const std::string& path);
  /// The same, but returns nothing for 404.
  std::optional<Answer> find(const std::string& kind, const std::string& realm, const std::string& path);
  /// Reads one resource by its id. Empty if it is gone.
  std::optional<Found> by_id(const std::string& kind, const std::string& id);
  /// Reads the role of the realm, or of the client with this UUID.
  std::optional<Found> role_by_name(const std::string& realm, const std::string& client_uuid, const std::string& client,
                                    const std::string& name);
  std::optional<Found> identity_provider(const std::string& realm, const std::string& alias);
  /// Reads a flow of the top level by its alias.
  std::optional<Found> flow(const std::string& realm, const std::string& alias);

 private:
  using Make = std::function<Found(nlohmann::json, std::int64_t sent_ns)>;
  /// Lists `path` in pages, each beginning with the last resource of the one before. Where that is another one, the
  /// list has moved and is read again; what was emitted is not emitted twice.
  bool list_pages(const std::string& kind, const std::string& realm, const std::string& path, const Make& make,
                  const Emit& emit);
  /// One pass of that. `moved` says that the list changed under it.
  bool list_pass(const std::string& kind, const std::string& realm, const std::string& path, const Emit& emit,
                 const Make& make, std::set<std::string>& emitted, bool& moved);
  bool list_at_once(const std::string& kind, const std::string& realm, const std::string& path, const Make& make,
                    const Emit& emit);
  bool roles(const std::string& realm, const Emit& emit);
  bool roles_of_clients(const std::string& realm, const Emit& emit);
  bool groups(const std::string& realm, const Emit& emit);
  /// Makes the record of one group; asks for the groups above it.
  Found group_of(const std::string& realm, nlohmann::json group, std::int64_t sent_ns);
  /// Returns the UUID of the group with this id; empty if there is none.
  std::string group_uuid(const std::string& realm, const std::string& id);
  Found role(const std::string& realm, const std::string& client, nlohmann::json role, std::int64_t sent_ns);
  Found flow_of(const std::string& realm, nlohmann::json flow, std::int64_t sent_ns);
  Found provider_of(const std::string& realm, nlohmann::json provider, std::int64_t sent_ns);

  [[noreturn]] void refuse(const Answer& answer, const std::string& kind, const std::string& realm,
                           const std::string& path) const;
  /// Returns the clients of the realm. `listed`: as they are now, otherwise as they were read last if that is known.
  const ClientNames& client_names(const std::string& realm, bool listed);
  /// Returns the names of a list of client scopes; empty without the right.
  std::optional<std::vector<std::string>> scope_names(const std::string& realm, const std::string& path);
  Place place(const std::string& realm) const { return {realm, settings_.owner_attribute}; }

  sdk::Call& call_;
  AdminApi& api_;
  const Settings& settings_;
  Index& index_;
  std::map<std::string, ClientNames> client_names_;  ///< by realm, as of this call
  std::map<std::string, Index::Ids> group_uuids_;    ///< by realm, as of this call: id → UUID
};

}  // namespace driftd::keycloak
