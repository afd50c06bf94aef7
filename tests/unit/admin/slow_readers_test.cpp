// SPDX-License-Identifier: Apache-2.0
// Answers that wait to be read have a common limit, whatever clients do not read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstring>

#include "support/heap/heap.hpp"
#include "support/patience.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// A connection that sends a request and reads nothing of the answer.
class SlowReader {
 public:
  SlowReader(const std::string& path, const std::string& target)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const std::string request = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    asked_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
             ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
  }
  ~SlowReader() { ::close(fd_); }
  SlowReader(const SlowReader&) = delete;
  SlowReader& operator=(const SlowReader&) = delete;

  bool asked() const { return asked_; }
  bool answered() const {
    pollfd one{fd_, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  /// Returns the beginning of the answer and leaves the rest unread.
  std::string front() const {
    std::string out(4'096, '\0');
    const ssize_t got = ::recv(fd_, out.data(), out.size(), MSG_PEEK | MSG_DONTWAIT);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
  }

 private:
  int fd_;
  bool asked_ = false;
};

/// Seven rows of two megabytes.
std::vector<core::ResourceRow> seven_large_rows() {
  core::ResourceRow row;
  row.backend = "cache";
  row.resource.id = {"server", "large"};
  row.resource.observed = R"({"a":")" + std::string(2'000'000, 'x') + "\"}";
  return {7, row};
}

const std::string kLarge = "/v1/resources?whole=true";

TEST(SlowReaders, HoldNoMoreThanTheRoomOfAllAnswers) {
  admin::ServerSettings settings;
  // the server must not close the first reader before it has answered the last
  settings.read_timeout *= 10 * kPatience;
  FakeAgent agent(settings);
  agent.reader()->large = seven_large_rows();
  std::vector<std::unique_ptr<SlowReader>> readers;
  {
    const HeapPeak peak;
    for (int i = 0; i < 16; ++i) {
      readers.push_back(std::make_unique<SlowReader>(agent.socket(), kLarge));
      ASSERT_TRUE(readers.back()->asked());
    }
    ASSERT_TRUE(
        eventually([&] { return std::ranges::all_of(readers, [](const auto& one) { return one->answered(); }); }));
    agent.meet();
    EXPECT_LT(peak.bytes(), 112u << 20) << "64 MiB of answers, and one that is being made";
  }
  std::size_t served = 0;
  for (const auto& reader : readers) {
    const std::string front = reader->front();
    if (front.starts_with("HTTP/1.1 200")) {
      ++served;
      continue;
    }
    EXPECT_THAT(front, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("\r\nRetry-After: 1\r\n"),
                             HasSubstr(R"({"error":{"code":"unavailable","message":"the answers that)"),
                             HasSubstr("maximum: 64 MiB")));
  }
  EXPECT_EQ(served, 4u) << "of 14 MB each";
  EXPECT_THAT(agent.curl({kHost + "/v1/status"}).out, EndsWith("200")) << "a small answer has room always";
  EXPECT_THAT(agent.curl({kHost + kLarge}).out, EndsWith("503"));
  readers.clear();
  EXPECT_TRUE(eventually([&] { return agent.curl({kHost + kLarge}).out.ends_with("200"); }))
      << "the room was given back";
}

TEST(SlowReaders, KeepNoDecisionAndNoProbeFromItsAnswer) {
  admin::ServerSettings settings;
  settings.max_answer_bytes = 0;
  FakeAgent agent(settings);
  agent.reader()->large = seven_large_rows();
  EXPECT_THAT(agent.curl({kHost + kLarge}).out, AllOf(HasSubstr("\"code\":\"unavailable\""), EndsWith("503")));
  EXPECT_THAT(agent.curl({"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-1/approve"}).out, EndsWith("200"));
  EXPECT_THAT(agent.curl({kHost + "/v1/drifts"}).out, EndsWith("200"));
  EXPECT_EQ(run({"curl", "-s", agent.url("/livez")}).out, "ok\n");
}

TEST(SlowReaders, AnAnswerThatWasReadLeavesItsRoom) {
  admin::ServerSettings settings;
  settings.max_answer_bytes = 20u << 20;
  FakeAgent agent(settings);
  agent.reader()->large = seven_large_rows();
  for (int i = 0; i < 5; ++i) EXPECT_THAT(agent.curl({kHost + kLarge}).out, EndsWith("200")) << i;
}

}  // namespace
}  // namespace driftd::test
