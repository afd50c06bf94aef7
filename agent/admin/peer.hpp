// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::admin {

/// The process at the other end of a Unix socket, as the kernel reports it (SO_PEERCRED, SO_PEERGROUPS).
struct Peer {
  std::uint32_t uid = 0, gid = 0;     ///< effective, when it connected
  std::vector<std::uint32_t> groups;  ///< supplementary groups
  std::string name;                   ///< name of the user; `uid:1234` until UserNames has found it
  std::int32_t pid = 0;               ///< process that connected
};

/// Returns `denied` if the kernel does not say who is calling. `groups` is empty if there are more than 1024.
Result<Peer> read_peer(int socket);

/// Returns the uid that the process's user logged in with, from the kernel's audit (loginuid). Empty if it is not set
/// or cannot be read. The process may have ended meanwhile and its pid been reused: this is a claim, not a proof.
std::optional<std::uint32_t> read_login_uid(std::int32_t pid);

enum class Access { none, read, decide };  ///< each one includes the one before it

/// Decides who may use the API. Root, the agent's own user, `uids`, `gids` and `decide_gids` may read and decide;
/// `read_gids` may only read.
struct AccessPolicy {
  std::vector<std::uint32_t> uids, gids, read_gids, decide_gids;  ///< ids, not names; empty: nobody
  Access access(const Peer& peer) const;  ///< the primary group counts like the supplementary ones
};
/// Returns true for root and the agent's own user. Some connections are reserved for them.
bool is_owner(const Peer& peer);

/// Returns the gid of a group. `not_found` names the group and `key`, the configuration key that named it.
/// May block as long as the name service does; called only when the agent starts.
Result<std::uint32_t> group_id(const std::string& name, const std::string& key);

}  // namespace driftd::admin
