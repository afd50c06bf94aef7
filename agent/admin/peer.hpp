// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::admin {

/// Who is at the other end of a Unix socket, as the kernel says (SO_PEERCRED, SO_PEERGROUPS).
struct Peer {
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> groups;  ///< supplementary ones
  std::string name;                   ///< of the user; `uid:1234` until UserNames knows more
  std::int32_t pid = 0;               ///< of who connected
};

Result<Peer> read_peer(int socket);

/// Who is behind a process beyond its user: as whom they logged in, as the kernel's audit noted it, or nothing where it
/// says nothing or may not be asked. The process may have ended meanwhile: a claim, no proof.
std::optional<std::uint32_t> read_login_uid(std::int32_t pid);

enum class Access { none, read, decide };

/// Who may use the API. Root, the agent's own user, `uids` and `gids` may do everything; `read_gids` may look, and
/// `decide_gids` may look and decide.
struct AccessPolicy {
  std::vector<std::uint32_t> uids, gids, read_gids, decide_gids;
  Access access(const Peer& peer) const;
};
/// Root and the agent's own user: a slot is always free for them.
bool is_owner(const Peer& peer);

/// gid of a group; `not_found` names it and `key`, the configuration's key that named it.
Result<std::uint32_t> group_id(const std::string& name, const std::string& key);

}  // namespace driftd::admin
