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

/// One kind as the system has it now. `missing`: not all of it could be seen, for this reason.
struct Listing {
  Records records;
  std::vector<sdk::Failure> missing;
};

/// Reads kinds through one deployment. Lives for one call. `known`: the directives that the schema names.
class Reader {
 public:
  Reader(sdk::Call& call, Deployment& deployment, const Settings& settings, const std::vector<std::string>& known)
      : call_(call),
        deployment_(deployment),
        settings_(settings),
        known_(known) {}

  /// A failure that concerns only this kind is in `missing`; any other is thrown.
  Listing list(const std::string& kind);
  /// Equal to that of an earlier call: nothing that we read has changed since. Empty: cannot be told.
  std::string change_stamp();

 private:
  Records server();
  Records users();
  Records cluster();
  Records replication();
  Config config();
  std::optional<std::vector<std::string>> modules();
  AclCategories categories(const std::vector<AclUser>& users);
  const std::string& cluster_nodes();
  void add_sentinel_failures(Listing& out) const;

  sdk::Call& call_;
  Deployment& deployment_;
  const Settings& settings_;
  const std::vector<std::string>& known_;
  std::string nodes_;  ///< CLUSTER NODES of this call
};

}  // namespace driftd::redis
