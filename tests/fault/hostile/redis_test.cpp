// SPDX-License-Identifier: Apache-2.0
// Attacks by somebody who may write ACLs or directives of a watched Redis.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <filesystem>
#include <thread>

#include "attacked.hpp"
#include "support/nats.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

/// Sends commands without waiting for the answers. Its thread reads the answers and drops them.
class Flood {
 public:
  explicit Flood(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("flood: cannot connect to Redis");
    drain_ = std::thread([socket = socket_] {
      char dropped[64 << 10];
      while (::recv(socket, dropped, sizeof dropped, 0) > 0) {
      }
    });
  }
  ~Flood() {
    ::shutdown(socket_, SHUT_RDWR);
    drain_.join();
    ::close(socket_);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  void send(const std::vector<std::string>& words) const {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const auto& word : words) text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("flood: Redis closed the connection");
  }

 private:
  int socket_;
  std::thread drain_;
};

class HostileRedis : public Attacked {
 protected:
  HostileRedis() {
    victim_.grant_readme("victim-canary");
    for (const char* name : {"app", "leaving"})
      user(name, {"on", ">app-canary", "~app:*", "resetchannels", "-@all", "+get"});
  }
  void watch(const std::string& more = {}) {
    start_agent("  - name: ledger\n    provider: redis\n    settings: { address: \"" + victim_.address() +
                    "\", username: driftd, password: \"${env:VICTIM}\" }\n" +
                    (more.empty() ? more : "    " + more + "\n"),
                {"ledger"}, {{"VICTIM", "victim-canary"}});
  }
  void user(const std::string& name, std::vector<std::string> rules) const {
    rules.insert(rules.begin(), {"ACL", "SETUSER", name});
    ASSERT_EQ(victim_.command(rules), "OK") << name.substr(0, 64);
  }
  void directive(const std::string& name, const std::string& value) const {
    ASSERT_EQ(victim_.command({"CONFIG", "SET", name, value}), "OK") << name;
  }
  /// Expects that both kinds are still judged: changes a harmless user and a harmless directive.
  void expect_watched() {
    const std::string mark = std::to_string(2'000'000 + ++marks_);
    user("app", {"~mark:" + mark});
    directive("hz", std::to_string(10 + marks_));
    EXPECT_TRUE(drift_appears("ledger", "~mark:" + mark, "app"));
    EXPECT_TRUE(drift_appears("ledger", "hz", "server"));
    const auto hz = [&] {
      return agent_->cli({"explain", "ledger", "server/server"}).out.find(std::to_string(10 + marks_)) !=
             std::string::npos;
    };
    EXPECT_TRUE(eventually(hz)) << agent_->cli({"explain", "ledger", "server/server"}).out;
  }

  /// Returns the totals of a sink's events. Throws if there is no such sink.
  nlohmann::json sink(const std::string& name) const {
    const nlohmann::json queue = agent_->ask({"queue"});
    for (const auto& one : queue.at("books")) {
      if (one.at("sink") == name) return one;
    }
    throw std::runtime_error("no sink " + name);
  }

  RedisServer victim_;
  int marks_ = 0;
};

TEST_F(HostileRedis, UsersOfAnyNameBytesAndLengthCostThemselvesAlone) {
  ASSERT_NO_FATAL_FAILURE(watch());
  const std::vector<std::pair<std::string, std::vector<std::string>>> poison{
      {"", {"on", ">x", "+@all"}},
      {"\x1b[2J\x07red", {"on", "+get"}},
      {"caf\xff\xfe", {"on", "~\xff\xfe", "+select|\xff"}},
      {"caf\\xff\\xfe", {"on", "+set"}},
      {"../../etc/passwd", {"on", "+get"}},
      {"**", {"on", "+get"}},
      {"%s%n$hmac", {"on", "+get"}},
      {std::string(5'000, 'n'), {"on", "+get"}},
      {"selector", {"on", "+get", "(~a) -@all +ping)"}},
      {"pattern", {"on", "~" + std::string(6u << 20, 'k'), "+get"}},
      {"unknown", {"on", "+select|x +@bogus"}},
      {"argument", {"on", "+select|" + std::string(5u << 20, 's')}},
      {"within", {"on", "(+select|" + std::string(5u << 20, 's') + ")"}}};
  for (const auto& [name, rules] : poison) {
    user(name, rules);
    ASSERT_TRUE(neighbour_is_watched()) << name.substr(0, 64);
  }
  ASSERT_NO_FATAL_FAILURE(expect_watched());
  for (const char* reason : {"`id` has 5000 bytes", "too long to be read"})
    EXPECT_TRUE(backend_reports("ledger", reason));
  for (const char* id : {"acl_user/(no name)", "acl_user/caf\\\\xff\\\\xfe", "acl_user/caf\\\\x5cxff\\\\x5cxfe",
                         "acl_user/pattern", "acl_user/within"}) {
    EXPECT_TRUE(drift_appears("ledger", id)) << "a new user is a drift, even if its rules cannot be read";
  }
  user("selector", {"+@all"});
  EXPECT_TRUE(drift_appears("ledger", "acl_user/selector"));
  expect_nothing_deleted("ledger");
  expect_unharmed();
  EXPECT_EQ(agent_->cli({"drifts", "--all"}).out.find('\x1b'), std::string::npos)
      << "escape sequences of names are not printed";
  EXPECT_EQ(all_output().find("canary"), std::string::npos);
}

TEST_F(HostileRedis, ADirectiveOfMegabytesOrOddBytesHidesNoOther) {
  ASSERT_NO_FATAL_FAILURE(watch());
  directive("masteruser", "a\xff\n\x1b[2J");
  EXPECT_TRUE(drift_appears("ledger", "masteruser"));
  directive("masteruser", std::string(7u << 20, 'u'));
  EXPECT_TRUE(backend_reports("ledger", "config.masteruser"));
  directive("replica-announce-ip", std::string(3u << 20, '\x01'));  // as JSON it is six times as long
  ASSERT_NO_FATAL_FAILURE(expect_watched());
  EXPECT_TRUE(backend_reports("ledger", "too long to be read"));
  expect_nothing_deleted("ledger");
  expect_unharmed();
}

/// Each change of the value is an event, and events are kept for days. The attacker never stops.
TEST_F(HostileRedis, AValueThatMovesWithEachCycleDoesNotFillTheStore) {
  constexpr std::uintmax_t kMax = 16u << 20, kEvent = 30u << 10;
  admin_ = "retention: { max_bytes: 16MiB }\n";
  ASSERT_NO_FATAL_FAILURE(watch("interval: 100ms"));
  std::uintmax_t written = 0;
  for (int i = 0; written < 3 * kMax; ++i) {
    ASSERT_LT(i, 3'000) << written;
    const auto before = std::filesystem::file_size(events_);
    user("app", {"resetkeys", "~" + std::string(kEvent, static_cast<char>('a' + i % 26))});
    const auto event_written = [&] { return std::filesystem::file_size(events_) >= before + kEvent; };
    ASSERT_TRUE(eventually(event_written, std::chrono::seconds(20))) << agent_->log();
    written += std::filesystem::file_size(events_) - before;
  }
  const auto fits = [&] {
    const nlohmann::json status = agent_->ask({"status"});
    const auto bytes = status.at("store_bytes").get<std::uintmax_t>();
    return status.at("store_max_bytes") == kMax && bytes > kEvent && bytes <= kMax;
  };
  EXPECT_TRUE(eventually(fits, std::chrono::seconds(30))) << agent_->ask({"status"}).dump();
  EXPECT_LE(std::filesystem::file_size(agent_->data_dir() + "/store.db"), 2 * kMax);
  EXPECT_NE(agent_->log().find("retention.max_bytes"), std::string::npos)
      << "the log tells that history was deleted before its time";
  ASSERT_NO_FATAL_FAILURE(expect_watched());
  expect_nothing_deleted("ledger");
  expect_unharmed();
}

/// One broker serves six sinks, more than the agent has threads for blocking calls.
TEST_F(HostileRedis, BrokersThatStandStillHoldNoOtherSinkAndNoAnswer) {
  constexpr std::size_t kEvent = 30u << 10;
  NatsServer broker;
  for (int i = 0; i < 6; ++i) {
    more_sinks_ +=
        "  bus" + std::to_string(i) + ": { type: nats, servers: [\"" + broker.url() + "\"], jetstream: false }\n";
  }
  ASSERT_NO_FATAL_FAILURE(watch("interval: 100ms"));
  broker.signal(SIGSTOP);
  std::chrono::steady_clock::duration longest{};
  for (int i = 0; i < 250; ++i) {  // more than the sockets of the six connections can buffer
    const auto before = std::filesystem::file_size(events_);
    user("app", {"resetkeys", "~" + std::string(kEvent, static_cast<char>('a' + i % 26))});
    const auto event_written = [&] { return std::filesystem::file_size(events_) >= before + kEvent; };
    ASSERT_TRUE(eventually(event_written, std::chrono::seconds(20))) << agent_->log();
    const auto asked = std::chrono::steady_clock::now();
    ASSERT_EQ(agent_->cli({"drifts", "--limit", "1"}).code, 1) << "one is open";
    longest = std::max(longest, std::chrono::steady_clock::now() - asked);
  }
  for (int i = 0; i < 6; ++i) {
    const nlohmann::json bus = sink("bus" + std::to_string(i));
    EXPECT_GT(bus.value("pending", 0), 0) << "the broker does not stand still: " << bus.dump();
  }
  EXPECT_TRUE(neighbour_is_watched()) << "while the brokers still stand";
  EXPECT_TRUE(eventually([&] { return sink("out").value("pending", -1) == 0; })) << sink("out").dump();
  broker.signal(SIGCONT);
  EXPECT_LT(longest, std::chrono::seconds(2 * kPatience)) << "a list is read on the threads for blocking calls, too";
  for (int i = 0; i < 6; ++i) {
    const std::string name = "bus" + std::to_string(i);
    EXPECT_TRUE(eventually([&] { return sink(name).value("pending", -1) == 0; }, std::chrono::seconds(60)))
        << sink(name).dump();
  }
  EXPECT_TRUE(neighbour_is_watched());
  EXPECT_EQ(agent_->backend("cache")->at("failures"), 0);
}

/// Before Redis 7.2, each new error code adds a line to INFO for ever, and whoever may EVAL can make error codes.
TEST_F(HostileRedis, ErrorCodesInInfoEndNoWorker) {
  ASSERT_NO_FATAL_FAILURE(watch(kSanitized ? "" : "budgets: { rss: 48MiB }"));
  const auto worker = agent_->backend("ledger")->at("worker").at("pid");
  Flood flood(victim_.port());
  for (int i = 0; i < 400'000; ++i) {
    const std::string code = "E" + std::to_string(1'000'000'000 + i) + "xxxxxxxxxxxxxxxx some";
    flood.send({"EVAL", "return redis.error_reply(ARGV[1])", "0", code});
  }
  ASSERT_TRUE(eventually(
      [&] {
        return victim_.command({"INFO", "errorstats"}).size() > (14u << 20);
      },
      std::chrono::seconds(120)));
  ASSERT_NO_FATAL_FAILURE(expect_watched());
  EXPECT_TRUE(neighbour_is_watched());
  EXPECT_EQ(agent_->log().find("over the budget"), std::string::npos);
  EXPECT_EQ(agent_->log().find("killed by signal"), std::string::npos);
  EXPECT_EQ(agent_->backend("ledger")->at("worker").at("pid"), worker) << agent_->backend("ledger")->dump();
  EXPECT_EQ(agent_->backend("ledger")->at("worker").at("crashes"), 0) << agent_->backend("ledger")->dump();
}

/// Thousands of users come and go while they are read. Each listing is still the state of one moment.
TEST_F(HostileRedis, AStormOfUsersIsNoDeletionAndBlindsNobody) {
  ASSERT_NO_FATAL_FAILURE(watch());
  constexpr int kUsers = 3'000;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kUsers; ++i) user("storm" + std::to_string(i), {"on", "+get", "~s" + std::to_string(round)});
    EXPECT_TRUE(neighbour_is_watched());
    for (int i = 0; i < kUsers; ++i) victim_.command({"ACL", "DELUSER", "storm" + std::to_string(i)});
    EXPECT_TRUE(neighbour_is_watched());
  }
  ASSERT_NO_FATAL_FAILURE(expect_watched());
  const auto none_open = [&] {
    return agent_->rows({"drifts", "--backend", "ledger", "--id", "storm*", "--limit", "1"}).empty();
  };
  EXPECT_TRUE(eventually(none_open, std::chrono::seconds(60)))
      << "the drift of a user that was never accepted ends when the user is gone";
  expect_nothing_deleted("ledger", "app");
  expect_nothing_deleted("ledger", "storm*");
  EXPECT_TRUE(drifts("ledger", "acl_user").empty()) << "no decision is asked for about users that were never accepted";
  victim_.command({"ACL", "DELUSER", "leaving"});
  EXPECT_TRUE(drift_appears("ledger", "\"deleted\"", "leaving")) << "the deletion of an accepted user is still a drift";
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
