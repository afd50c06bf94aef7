// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::admin {

/// Who is at the other end of a Unix socket, as the kernel says (SO_PEERCRED, SO_PEERGROUPS).
struct Peer {
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> groups;  ///< supplementary ones
  std::string name;                   ///< of the user; `uid:1234` when the system knows none
  std::int32_t pid = 0;               ///< of who connected
};

Result<Peer> peer_of(int socket);

/// Who may use the API: root, the agent's own user, and those listed.
struct Permit {
  std::vector<std::uint32_t> uids, gids;
  bool allows(const Peer& peer) const;
};

/// gid of a group; `not_found` names it.
Result<std::uint32_t> group_id(const std::string& name);

}  // namespace driftd::admin
