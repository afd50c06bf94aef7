// SPDX-License-Identifier: Apache-2.0
#include "check/sink/receiver.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <poll.h>

#include <cerrno>
#include <filesystem>

#include "check/address.hpp"
#include "check/unix_socket.hpp"

namespace driftd::check {
namespace {

constexpr std::chrono::milliseconds kLong{10'000}, kShort{50};

/// A connection to a port of loopback.
class Peer {
 public:
  explicit Peer(int port, int type = SOCK_STREAM) : fd_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = ::htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  ~Peer() { ::close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::string read(std::size_t size) const {
    std::string out(size, '\0');
    const ssize_t n = ::recv(fd_, out.data(), size, MSG_WAITALL);
    out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return out;
  }
  int end() const {  ///< waits for the end of the connection: 0, or the error
    char byte = 0;
    return ::recv(fd_, &byte, 1, 0) < 0 ? errno : 0;
  }

 private:
  int fd_;
};

TEST(CheckReceiver, FindsIdsThatArriveInPiecesOnSeveralConnections) {
  Receiver receiver({"", 0, true, {}});
  receiver.look_for("chkabc");
  const Peer first(receiver.addresses().tcp), second(receiver.addresses().tcp);
  first.send("x chkab");
  second.send("chkabc-000002 and chkabc-12x");
  EXPECT_EQ(receiver.await({2}, kLong), -1);
  EXPECT_EQ(receiver.await({1}, kShort), 1);
  first.send("c-00000");
  first.send("1");
  EXPECT_EQ(receiver.await({1}, kLong), -1);
  ASSERT_EQ(receiver.arrivals().size(), 2u);
  EXPECT_EQ(receiver.arrivals()[0].event, 2u);
  EXPECT_NE(receiver.arrivals()[0].connection, receiver.arrivals()[1].connection);
  EXPECT_EQ(receiver.count(1), 1u);
  EXPECT_EQ(receiver.await({1}, kShort, 2), 1);
}

TEST(CheckReceiver, FindsIdsInDatagrams) {
  Receiver receiver({"", 0, true, {}});
  receiver.look_for("chkabc");
  Peer(receiver.addresses().udp, SOCK_DGRAM).send("<132>1 chkabc-000007");
  EXPECT_EQ(receiver.await({7}, kLong), -1);
}

TEST(CheckReceiver, AnswersEachLine) {
  Receiver receiver({"ok\n", 0, true, {}});
  const Peer peer(receiver.addresses().tcp);
  peer.send("one\ntw");
  EXPECT_EQ(peer.read(3), "ok\n");
  peer.send("o\nthree\n");
  EXPECT_EQ(peer.read(6), "ok\nok\n");
}

TEST(CheckReceiver, ResetsAConnectionAfterSoManyBytes) {
  Receiver receiver({"", 0, true, {}});
  const Peer whole(receiver.addresses().tcp);
  whole.send("0123456789");
  EXPECT_TRUE(receiver.await_text("0123456789", kLong));
  receiver.set_reset_after(4);
  const Peer cut(receiver.addresses().tcp);
  cut.send("abcdefgh");
  EXPECT_EQ(cut.end(), ECONNRESET);
  EXPECT_TRUE(receiver.await_text("abcd", kLong));
  EXPECT_FALSE(receiver.await_text("abcde", kShort));
}

TEST(CheckReceiver, CountsWhatItDoesNotKeep) {
  Receiver receiver({"ok", 0, false, {}});
  receiver.look_for("chkabc");
  const Peer peer(receiver.addresses().tcp);
  peer.send("chkabc-000001\n");
  EXPECT_EQ(peer.read(2), "ok");
  EXPECT_EQ(receiver.bytes(), 14u);
  EXPECT_TRUE(receiver.arrivals().empty());
}

TEST(CheckReceiver, ListensAtUnixSocketsInItsFolder) {
  const SocketFolder folder;
  Addresses at;
  {
    Receiver receiver({"ok\n", 0, true, folder.path()});
    receiver.look_for("chkabc");
    at = receiver.addresses();
    const int stream = connect_unix_socket(at.unix_stream, SOCK_STREAM);
    EXPECT_EQ(::send(stream, "chkabc-000001\n", 14, MSG_NOSIGNAL), 14);
    EXPECT_EQ(receiver.await({1}, kLong), -1);
    const std::string large = std::string(100'000, 'x') + "chkabc-000002";
    const int datagram = connect_unix_socket(at.unix_datagram, SOCK_DGRAM);
    EXPECT_EQ(::send(datagram, large.data(), large.size(), MSG_NOSIGNAL), static_cast<ssize_t>(large.size()));
    EXPECT_EQ(receiver.await({2}, kLong), -1) << "a whole datagram, also one above 64 KiB";
    ::close(stream);
    ::close(datagram);
  }
  EXPECT_EQ(connect_unix_socket(at.unix_stream, SOCK_STREAM), -1);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CheckReceiver, ResetsAUnixConnectionAfterSoManyBytes) {
  const SocketFolder folder;
  Receiver receiver({"", 4, true, folder.path()});
  const int fd = connect_unix_socket(receiver.addresses().unix_stream, SOCK_STREAM);
  EXPECT_EQ(::send(fd, "abcdefgh", 8, MSG_NOSIGNAL), 8);
  pollfd end{fd, POLLIN, 0};
  ASSERT_EQ(::poll(&end, 1, 10'000), 1);
  char byte = 0;
  EXPECT_EQ(::recv(fd, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_TRUE(receiver.await_text("abcd", kLong));
  ::close(fd);
}

TEST(CheckBlackHole, OfAUnixSocketRefusesOrIsFullOrTakesWithoutReading) {
  using Kind = BlackHole::Kind;
  const SocketFolder folder;
  for (const auto& [network, type] : {std::pair(BlackHole::Network::unix_stream, SOCK_STREAM),
                                      std::pair(BlackHole::Network::unix_datagram, SOCK_DGRAM)}) {
    const BlackHole refusing(Kind::refusing, network, folder.path()), deaf(Kind::deaf, network, folder.path()),
        full(Kind::full, network, folder.path());
    EXPECT_EQ(connect_unix_socket(refusing.path(), type), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    const int heard = connect_unix_socket(deaf.path(), type);
    EXPECT_EQ(::send(heard, "x", 1, MSG_NOSIGNAL), 1);
    const int queued = connect_unix_socket(full.path(), type);
    EXPECT_TRUE(queued < 0 || ::send(queued, "x", 1, MSG_NOSIGNAL) < 0);
    EXPECT_EQ(errno, EAGAIN);
    ::close(heard);
    if (queued >= 0) ::close(queued);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace driftd::check
