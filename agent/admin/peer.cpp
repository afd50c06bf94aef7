// SPDX-License-Identifier: Apache-2.0
#include "admin/peer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace driftd::admin {
namespace {

std::string user_name(std::uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return "uid:" + std::to_string(uid);
}

bool contains(const std::vector<std::uint32_t>& all, std::uint32_t id) {
  return std::find(all.begin(), all.end(), id) != all.end();
}

}  // namespace

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(Code::denied, std::string("the kernel does not say who is calling: ") + std::strerror(errno));
  }
  Peer peer{credentials.uid, credentials.gid, {}, user_name(credentials.uid), credentials.pid};
  std::vector<gid_t> groups(1024);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {  // more than 1024: none counts
    peer.groups.assign(groups.begin(), groups.begin() + size / sizeof(gid_t));
  }
  return peer;
}

bool Permit::allows(const Peer& peer) const {
  if (peer.uid == 0 || peer.uid == ::geteuid() || contains(uids, peer.uid) || contains(gids, peer.gid)) return true;
  return std::any_of(peer.groups.begin(), peer.groups.end(), [&](std::uint32_t gid) { return contains(gids, gid); });
}

Result<std::uint32_t> group_id(const std::string& name) {
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(64 * 1024);
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->gr_gid;
  }
  return fail(Code::not_found, "there is no group '" + name + "' on this machine; create it or change admin.socket_group");
}

}  // namespace driftd::admin
