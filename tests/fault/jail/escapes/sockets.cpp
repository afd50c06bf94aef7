// SPDX-License-Identifier: Apache-2.0
// Attempts to use sockets other than TCP and UDP.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstddef>
#include <cstring>

#include "escapes.hpp"

namespace driftd::escapes {
namespace {

/// Makes a socket and closes it.
int make(int family, int type, int protocol = 0) {
  const int fd = ::socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}
int raw(const Targets&) { return make(AF_INET, SOCK_RAW, IPPROTO_ICMP); }
int raw_six(const Targets&) { return make(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6); }
int packet(const Targets&) { return make(AF_PACKET, SOCK_RAW); }
int netlink(const Targets&) { return make(AF_NETLINK, SOCK_RAW, 0); }
int audit(const Targets&) { return make(AF_NETLINK, SOCK_DGRAM, 9 /* NETLINK_AUDIT */); }
int vsock(const Targets&) { return make(AF_VSOCK, SOCK_STREAM); }
int af_alg(const Targets&) { return make(AF_ALG, SOCK_SEQPACKET); }
int af_key(const Targets&) { return make(AF_KEY, SOCK_RAW, 2 /* PF_KEY_V2 */); }

int mptcp(const Targets&) { return make(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */); }
int udp_lite(const Targets&) { return make(AF_INET, SOCK_DGRAM, 136 /* IPPROTO_UDPLITE */); }
int sctp(const Targets&) { return make(AF_INET, SOCK_STREAM, 132 /* IPPROTO_SCTP */); }
int l2tp(const Targets&) { return make(AF_INET6, SOCK_DGRAM, 115 /* IPPROTO_L2TP */); }
int ping(const Targets&) { return make(AF_INET, SOCK_DGRAM, IPPROTO_ICMP); }
int ping_six(const Targets&) { return make(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6); }
int ping_high_bits(const Targets&) {
  const long fd = ::syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0x100000000ul | IPPROTO_ICMP);
  if (fd < 0) return errno;
  ::close(static_cast<int>(fd));
  return 0;
}

sockaddr_un address_of(const std::string& name, bool abstract, socklen_t& size) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path + (abstract ? 1 : 0), name.data(), std::min(name.size(), sizeof out.sun_path - 2));
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return out;
}
int connect_to(const std::string& name, bool abstract) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  socklen_t size = 0;
  const sockaddr_un address = address_of(name, abstract, size);
  const int result = outcome(::connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
  ::close(fd);
  return result;
}
int agent_socket(const Targets& to) { return connect_to(to.agent_socket, false); }
int abstract_socket(const Targets& to) { return connect_to(to.abstract_name, true); }
/// Sends from one end of a socketpair to another address, which datagram sockets may. SOCK_RAW makes a datagram pair
/// too.
int send_from_pair(const Targets& to, int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  socklen_t size = 0;
  const sockaddr_un address = address_of(to.datagram_socket, false, size);
  const int result =
      outcome(::sendto(ends[0], "x", 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address), size));
  ::close(ends[0]);
  ::close(ends[1]);
  return result;
}
int datagram_pair(const Targets& to) { return send_from_pair(to, SOCK_DGRAM); }
int raw_pair(const Targets& to) { return send_from_pair(to, SOCK_RAW); }
int bind_pair(const Targets& to) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  socklen_t size = 0;
  const sockaddr_un address = address_of(to.outside + "/bound", false, size);
  const int result = reached(::bind(ends[0], reinterpret_cast<const sockaddr*>(&address), size), EINVAL);
  if (result == 0) ::unlink((to.outside + "/bound").c_str());
  ::close(ends[0]);
  ::close(ends[1]);
  return result;
}

}  // namespace

std::vector<Attempt> socket_attempts() {
  return {{"raw socket", raw, true},
          {"raw IPv6 socket", raw_six, true, true},
          {"packet socket", packet, true, true},
          {"netlink route socket", netlink},
          {"netlink audit socket", audit, false, true},
          {"vsock", vsock, false, true},
          {"AF_ALG socket", af_alg, false, true},
          {"AF_KEY socket", af_key, true, true},
          {"MPTCP socket", mptcp, false, true},
          {"UDP-Lite socket", udp_lite, false, true},
          {"SCTP socket", sctp, false, true},
          {"L2TP socket", l2tp, false, true},
          {"ICMP datagram socket", ping, false, true},
          {"ICMPv6 datagram socket", ping_six, false, true},
          {"ICMP datagram socket with high bits", ping_high_bits, false, true},
          {"agent's Unix socket", agent_socket},
          {"abstract socket", abstract_socket},
          {"datagram pair to a Unix socket", datagram_pair},
          {"raw pair to a Unix socket", raw_pair},
          {"bind a Unix socket in a folder", bind_pair}};
}

}  // namespace driftd::escapes
