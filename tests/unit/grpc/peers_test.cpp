// SPDX-License-Identifier: Apache-2.0
#include "grpc/peers.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <set>

namespace driftd::rpc {
namespace {

struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  int ends[2] = {-1, -1};
};

/// A call of a closed connection may be judged after the next one has come: it must not get that one's rights.
TEST(Peers, AConnectionThatFollowsAClosedOneHasAnotherName) {
  Peers peers;
  std::set<int> used;
  for (int i = 0; i < 400; ++i) {
    const Pair pair;
    const int socket = peers.renumber(pair.ends[0]);
    EXPECT_TRUE(used.insert(socket).second) << socket << " again after " << i;
    peers.add(socket, {"uid " + std::to_string(i), Rights::read});
    EXPECT_EQ(peers.find("fd:" + std::to_string(socket))->name, "uid " + std::to_string(i));
    EXPECT_EQ(peers.open(), 1U);
    ::close(socket);
    ::close(pair.ends[1]);
  }
}

TEST(Peers, AConnectionStaysTheSameUnderItsNewDescriptor) {
  Peers peers;
  const Pair pair;
  const int socket = peers.renumber(pair.ends[0]);
  char byte = 'x';
  EXPECT_EQ(::write(pair.ends[1], &byte, 1), 1);
  EXPECT_EQ(::read(socket, &byte, 1), 1);
  ::close(socket);
  EXPECT_EQ(::read(pair.ends[1], &byte, 1), 0) << "no other descriptor holds it open";
  ::close(pair.ends[1]);
}

}  // namespace
}  // namespace driftd::rpc
