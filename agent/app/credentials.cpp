// SPDX-License-Identifier: Apache-2.0
#include "app/credentials.hpp"

#include "admin/peer.hpp"

namespace driftd::app {

Result<std::vector<secrets::CredentialGrant>> find_grants(const config::Resolve& settings) {
  std::vector<secrets::CredentialGrant> out;
  for (const auto& grant : settings.grants) {
    secrets::CredentialGrant one{grant};
    if (!grant.group.empty()) {
      DRIFTD_TRY(one.gid, admin::group_id(grant.group, "resolve.grants"));
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace driftd::app
