// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "driftd/sdk/scope.hpp"
#include "redis/acl.hpp"
#include "redis/config.hpp"
#include "redis/deployment.hpp"

namespace driftd::redis {

using Records = std::vector<sdk::Record>;

/// All records of one kind. `missing` holds the reasons if the list is incomplete.
struct Listing {
  Records records;
  std::vector<sdk::Failure> missing;
};

/// Reads kinds from one deployment. Lives for one call. `known` are the directives that the schema names.
class Reader {
 public:
  Reader(sdk::Call& call, Deployment& deployment, const Settings& settings, const std::vector<std::string>& known)
      : call_(call),
        deployment_(deployment),
        settings_(settings),
        known_(known) {}

  /// Lists a kind. A failure that concerns only this kind is in `missing`; any other is thrown.
  Listing list(const std::string& kind);
  /// Returns a text that is equal to that of an earlier call only if nothing that we read has changed since; empty if
  /// that cannot be told.
  std::string change_stamp();
  Config config();                   ///< the directives that settings.config asks for
  std::vector<AclUser> acl_users();  ///< with password digests of the server: not for logs

 private:
  Records server();
  Records users();
  Records cluster();
  Records replication();
  std::optional<std::vector<std::string>> modules();
  AclCategories categories(const std::vector<AclUser>& users);
  const std::string& cluster_nodes();
  void add_sentinel_failures(Listing& out) const;

  sdk::Call& call_;
  Deployment& deployment_;
  const Settings& settings_;
  const std::vector<std::string>& known_;
  std::string nodes_;  ///< answer of CLUSTER NODES in this call
};

}  // namespace driftd::redis
