// SPDX-License-Identifier: Apache-2.0
// Access control: groups that may read and groups that may decide, limits for each listener and each user, and the
// audit lines of refused callers.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstring>

#include "core/denials.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kOther = "nobody";  // a user whose only group is `nogroup`

std::uint32_t gid_of(const std::string& name) {
  return static_cast<std::uint32_t>(std::stoul(run({"id", "-g", name}).out));
}
std::string group_of(const std::string& user) {
  std::string out = run({"id", "-gn", user}).out;
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

/// Returns what that user gets, followed by the status.
std::string as_user(const FakeAgent& agent, const std::string& user, std::vector<std::string> arguments) {
  const std::string log = agent.folder.write("other", "");
  EXPECT_EQ(::chmod(log.c_str(), 0666), 0);
  EXPECT_EQ(::chmod(agent.folder.path().c_str(), 0711), 0);
  std::vector<std::string> command = {
      "curl", "-s", "-m", std::to_string(20 * kPatience), "-w", "%{http_code}", "--unix-socket", agent.socket()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Child curl(command, {log, {}, user});
  curl.wait(std::chrono::seconds(30));
  return read_file(log);
}

std::string as_other(const FakeAgent& agent, std::vector<std::string> arguments) {
  return as_user(agent, kOther, std::move(arguments));
}

/// A process of that user with idle connections to the socket.
Child hold(const FakeAgent& agent, int count, const std::string& user) {
  EXPECT_EQ(::chmod(agent.folder.path().c_str(), 0711), 0);
  const std::string ready = agent.folder.write("ready", "");
  EXPECT_EQ(::chmod(ready.c_str(), 0666), 0);
  const std::string script =
      "import signal,socket,sys\nheld=[]\n"
      "for i in range(int(sys.argv[2])):\n  s=socket.socket(socket.AF_UNIX)\n  s.connect(sys.argv[1])\n  "
      "held.append(s)\n"
      "print('held', flush=True)\nsignal.pause()\n";
  Child out({"python3", "-c", script, agent.socket(), std::to_string(count)}, {ready, {}, user});
  EXPECT_TRUE(eventually([&] { return read_file(ready).find("held") != std::string::npos; }));
  return out;
}

/// Idle connections.
class Idle {
 public:
  ~Idle() {
    for (const int fd : fds_) ::close(fd);
  }
  bool open_port(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return add(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), address);
  }
  bool open_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return add(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), address);
  }

 private:
  template <class Address>
  bool add(int fd, const Address& address) {
    fds_.push_back(fd);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  std::vector<int> fds_;
};

TEST(Door, IdleConnectionsOnThePortDisturbNeitherTheSocketNorAProbe) {
  FakeAgent agent;
  Idle idle;
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(idle.open_port(agent.server->port()));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(agent.curl({kHost + "/v1/status"}).out, EndsWith("200"));
    EXPECT_EQ(run({"curl", "-s", "-m", std::to_string(5 * kPatience), agent.url("/livez")}).out, "ok\n")
        << "a probe of the port, too";
  }
}

TEST(Door, IdleConnectionsOnTheSocketLeaveASlotForRootAndTheAgentsOwnUser) {
  if (::getuid() != 0)
    GTEST_SKIP() << "LOUD: only root can become another user, what others may do at the door is not tested";
  admin::ServerSettings settings;
  settings.policy.uids = {65534};
  FakeAgent agent(settings);
  const Child holder = hold(agent, 80, kOther);
  EXPECT_THAT(agent.curl({kHost + "/v1/status"}).out, EndsWith("200"));
}

TEST(Door, AUsersShareIsBoundedAndTheRefusalSaysSo) {
  if (::getuid() != 0)
    GTEST_SKIP() << "LOUD: only root can become another user, what others may do at the door is not tested";
  admin::ServerSettings settings;
  settings.policy.uids = {65534};
  FakeAgent agent(settings);
  const Child holder = hold(agent, 16, kOther);
  EXPECT_THAT(as_other(agent, {kHost + "/v1/status"}), AllOf(HasSubstr("16 connections"), EndsWith("503")));
}

TEST(Door, AUserThatMayNotComeInHoldsNoSlot) {
  if (::getuid() != 0)
    GTEST_SKIP() << "LOUD: only root can become another user, what others may do at the door is not tested";
  admin::ServerSettings settings;
  settings.policy.uids = {1};  // `daemon`
  settings.max_unix = 9;
  settings.reserved = 8;  // leaves one slot for all users but root
  FakeAgent agent(settings);
  const Child holder = hold(agent, 80, kOther);
  EXPECT_THAT(as_user(agent, "daemon", {kHost + "/v1/status"}), EndsWith("200"));
}

TEST(Door, TheLastOfTheRoomForAnswersIsForRootAndTheAgentsOwnUser) {
  if (::getuid() != 0)
    GTEST_SKIP() << "LOUD: only root can become another user, what others may do at the door is not tested";
  admin::ServerSettings settings;
  settings.policy.uids = {65534};
  settings.max_answer_bytes = 17u << 20;  // leaves 1 MiB for other users
  FakeAgent agent(settings);
  core::ResourceRow row;
  row.backend = "cache";
  row.resource.id = {"server", "large"};
  row.resource.observed = R"({"a":")" + std::string(2'000'000, 'x') + "\"}";
  agent.reader()->large = {row};
  EXPECT_THAT(as_other(agent, {kHost + "/v1/resources?whole=true"}), EndsWith("503"));
  EXPECT_THAT(agent.curl({kHost + "/v1/resources?whole=true"}).out, EndsWith("200"));
}

TEST(Door, ConnectionsBeyondTheBoundAreTurnedAway) {
  admin::ServerSettings settings;
  settings.max_unix = 0;
  FakeAgent agent(settings);
  EXPECT_THAT(agent.curl({kHost + "/v1/status"}).out, EndsWith("503"));
}

TEST(Door, RefusalsAreBoundedAndThePortServesOneRequestAConnection) {
  admin::ServerSettings settings;
  settings.max_unix = 0;
  settings.max_refusals = 0;
  FakeAgent agent(settings);
  EXPECT_THAT(agent.curl({kHost + "/v1/status"}).out, EndsWith("000")) << "closed without a word";
  EXPECT_THAT(run({"curl", "-s", "-i", agent.url("/livez")}).out, HasSubstr("Connection: close"));
}

TEST(Door, TheSocketsModeLetsInWhomTheConfigurationNames) {
  struct Case {
    const char* what;
    admin::ServerSettings settings;
    mode_t mode;
  };
  std::vector<Case> cases(5);
  cases[0] = {"nobody", {}, 0660};
  cases[1].what = "uids";
  cases[1].settings.policy.uids = {65534};
  cases[1].mode = 0666;
  cases[2].what = "gids";
  cases[2].settings.policy.gids = {65534};
  cases[2].mode = 0666;
  cases[3].what = "read_group";
  cases[3].settings.read_group = group_of(kOther);
  cases[3].mode = 0666;
  cases[4].what = "decide_group";
  cases[4].settings.decide_group = group_of(kOther);
  cases[4].mode = 0666;
  for (const auto& one : cases) {
    FakeAgent agent(one.settings);
    struct stat info {};
    ASSERT_EQ(::stat(agent.socket().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, one.mode) << one.what;
  }
}

TEST(Door, EachWayOfNamingSomebodyLetsThemInAndNoOther) {
  if (::getuid() != 0)
    GTEST_SKIP() << "LOUD: only root can become another user, what others may do at the door is not tested";
  struct Case {
    const char* what;
    admin::ServerSettings settings;
    const char* reads;
    const char* decides;
  };
  std::vector<Case> cases(6);
  cases[0].what = "uids";
  cases[0].settings.policy.uids = {65534};
  cases[0].reads = "200";
  cases[0].decides = "200";
  cases[1].what = "gids";
  cases[1].settings.policy.gids = {gid_of(kOther)};
  cases[1].reads = "200";
  cases[1].decides = "200";
  cases[2].what = "socket_group";
  cases[2].settings.socket_group = group_of(kOther);
  cases[2].reads = "200";
  cases[2].decides = "200";
  cases[3].what = "read_group";
  cases[3].settings.read_group = group_of(kOther);
  cases[3].reads = "200";
  cases[3].decides = "403";
  cases[4].what = "decide_group";
  cases[4].settings.decide_group = group_of(kOther);
  cases[4].reads = "200";
  cases[4].decides = "200";
  cases[5].what = "another";
  cases[5].settings.policy.gids = {4242};
  cases[5].reads = "403";
  cases[5].decides = "403";
  for (const auto& one : cases) {
    FakeAgent agent(one.settings);
    EXPECT_THAT(as_other(agent, {kHost + "/v1/drifts"}), EndsWith(one.reads)) << one.what;
    for (const char* deed : {"/v1/drifts/d-1/approve", "/v1/drifts/d-1/undo", "/v1/reload", "/v1/refresh", "/v1/replay",
                             "/v1/deadletters/drop", "/v1/deadletters/replay", "/v1/plugins/resume"}) {
      const std::string body = R"({"digest":"abcdef01"})";
      const std::string said =
          as_other(agent, {"-d", std::string(deed).find("drifts") == std::string::npos ? "" : body, kHost + deed});
      if (std::string(one.decides) == "403") {
        EXPECT_THAT(said, EndsWith("403")) << one.what << deed;
      } else {
        EXPECT_THAT(said, testing::Not(EndsWith("403"))) << one.what << deed;
      }
    }
  }
}

TEST(Door, AReaderWhoDecidesIsToldWhomToAskAndIsInTheLog) {
  if (::getuid() != 0)
    GTEST_SKIP() << "LOUD: only root can become another user, what others may do at the door is not tested";
  admin::ServerSettings settings;
  settings.read_group = group_of(kOther);
  FakeAgent agent(settings);
  EXPECT_THAT(as_other(agent, {"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-1/approve"}),
              AllOf(HasSubstr("may look at this agent, but not approve"), HasSubstr("admin.decide_group")));
  EXPECT_TRUE(agent.control()->decisions.empty());
  const auto lines = agent.control()->lines;
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].verb, "refused");
  EXPECT_EQ(lines[0].subject, "approve d-1");
  EXPECT_EQ(lines[0].actor, kOther);
  EXPECT_EQ(lines[0].caller.uid, 65534);
}

TEST(Door, AGroupThatIsNotThereIsNamedWithItsKey) {
  FakeAgent agent;
  for (const char* key : {"admin.socket_group", "admin.read_group", "admin.decide_group"}) {
    admin::ServerSettings settings;
    settings.socket = agent.folder.file("another.sock");
    (std::string(key) == "admin.socket_group" ? settings.socket_group
     : std::string(key) == "admin.read_group" ? settings.read_group
                                              : settings.decide_group) = "no-such-group";
    FakeControl control;
    FakeReader reader;
    const auto opened =
        admin::Server::open(agent.io.get_executor(), settings, {control, reader, agent.metrics, FakePlugins::scan});
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message, AllOf(HasSubstr("no-such-group"), HasSubstr(key)));
  }
}

TEST(Door, RefusedCallersCannotFillTheLog) {
  core::Denials denials;
  auto now = core::Denials::Clock::now();
  int lines = 0;
  for (int i = 0; i < 1000; ++i) lines += denials.admit({"1000"}, now) ? 1 : 0;
  EXPECT_EQ(lines, 5);
  EXPECT_TRUE(denials.admit({"1001"}, now)) << "another user's refusal still has its line";
  for (std::int64_t uid = 2000; uid < 12'000; ++uid) lines += denials.admit({std::to_string(uid)}, now) ? 1 : 0;
  EXPECT_LE(lines, 30);
  now += std::chrono::seconds(61);
  EXPECT_EQ(denials.admit({"1000"}, now), 995u) << "the others are counted";
}

TEST(RefusedCallers, WhoLeavesAfterwardsIsCountedToo) {
  core::Denials denials;
  auto now = core::Denials::Clock::now();
  const core::Denials::Who mallory{"1000", "mallory", {1000, 1000, 4711, {}}},
      kim{"1001", "kim", {1001, 1001, 4712, {}}};
  const auto lines = [&](bool all) { return denials.unwritten_lines(now, 7, all); };
  for (int i = 0; i < 1000; ++i) (void)denials.admit(mallory, now);
  for (int i = 0; i < 3; ++i) (void)denials.admit(kim, now);
  EXPECT_TRUE(lines(false).empty()) << "the minute is not over";
  now += std::chrono::seconds(61);
  const auto late = lines(false);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].actor, "mallory");
  EXPECT_EQ(late[0].caller.uid, 1000);
  EXPECT_EQ(late[0].at_ns, 7);
  EXPECT_EQ(late[0].outcome, "denied: 995 more of this caller since the last line");
  EXPECT_EQ(late[0].reason, "") << "the number of the user says it";
  EXPECT_TRUE(lines(false).empty()) << "once";
  for (int i = 0; i < 7; ++i) (void)denials.admit(mallory, now);
  const auto rest = lines(true);
  ASSERT_EQ(rest.size(), 1u) << "the agent ends within the minute";
  EXPECT_EQ(rest[0].outcome, "denied: 2 more of this caller since the last line");
}

TEST(RefusedCallers, AnAddressOfACallerWhomNobodyKnowsIsNamed) {
  core::Denials denials;
  const auto now = core::Denials::Clock::now();
  for (int i = 0; i < 7; ++i) (void)denials.admit({"ipv4:10.0.0.7", "unknown", {}}, now);
  const auto lines = denials.unwritten_lines(now, 7, true);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].outcome, "denied: 2 more of this caller since the last line");
  EXPECT_EQ(lines[0].reason, "from ipv4:10.0.0.7");
}

}  // namespace
}  // namespace driftd::test
