// SPDX-License-Identifier: Apache-2.0
#include "admin/peer.hpp"

#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace driftd::admin {
namespace {

bool contains(const std::vector<std::uint32_t>& all, std::uint32_t id) {
  return std::find(all.begin(), all.end(), id) != all.end();
}

bool is_member(const Peer& peer, const std::vector<std::uint32_t>& groups) {
  return contains(groups, peer.gid) ||
         std::any_of(peer.groups.begin(), peer.groups.end(), [&](std::uint32_t gid) { return contains(groups, gid); });
}

}  // namespace

Result<Peer> read_peer(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(Code::denied, std::string("the kernel does not say who is calling: ") + std::strerror(errno));
  }
  Peer peer{credentials.uid, credentials.gid, {}, "uid:" + std::to_string(credentials.uid), credentials.pid};
  std::vector<gid_t> groups(1024);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {  // more than 1024: none counts
    peer.groups.assign(groups.begin(), groups.begin() + size / sizeof(gid_t));
  }
  return peer;
}

std::optional<std::uint32_t> read_login_uid(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/loginuid");
  std::uint32_t uid = 0;
  constexpr std::uint32_t kUnset = 0xffffffff;  // not set: a service, or a kernel without audit
  if (!(file >> uid) || uid == kUnset) return std::nullopt;
  return uid;
}

bool is_owner(const Peer& peer) { return peer.uid == 0 || peer.uid == ::geteuid(); }

Access AccessPolicy::access(const Peer& peer) const {
  if (is_owner(peer) || contains(uids, peer.uid) || is_member(peer, gids) || is_member(peer, decide_gids))
    return Access::decide;
  return is_member(peer, read_gids) ? Access::read : Access::none;
}

Result<std::uint32_t> group_id(const std::string& name, const std::string& key) {
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(64 * 1024);
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->gr_gid;
  }
  return fail(Code::not_found, "there is no group '" + name + "' on this machine; create it or change " + key);
}

}  // namespace driftd::admin
