// SPDX-License-Identifier: Apache-2.0
// The consumers that docs/consume.md shows, as their users run them: C++ with the library, Go and Python with nothing
// but NATS and the protobuf file. Each with its language's own clients of NATS and Redis.
#include <memory>

#include "support/redis.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

const std::string kFolder = std::string(DRIFTD_SOURCE_DIR) + "/examples/consumers/";
const std::string kProto = std::string(DRIFTD_SOURCE_DIR) + "/agent/proto";

void must(const std::vector<std::string>& command) {
  const Output done = run(command, {}, std::chrono::seconds(280));
  if (done.code != 0) throw std::runtime_error(command[0] + ": " + done.out + done.err);
}

std::vector<std::string> cpp(const TempDir&) { return {std::string(DRIFTD_BINARY_DIR) + "/bin/order_consumer"}; }

std::vector<std::string> go(const TempDir&) {
  const std::string out = std::string(DRIFTD_BINARY_DIR) + "/examples/consumers/go";
  must({"env", "-u", "MAKEFLAGS", "make", "-s", "-C", kFolder + "go", "OUT=" + out, "PROTO=" + kProto});
  return {out + "/order_consumer"};
}

std::vector<std::string> python(const TempDir& dir) {
  const Output made = run({"sh", std::string(DRIFTD_SOURCE_DIR) + "/tests/support/venv.sh", "nats-py==2.7.2",
                           "redis==5.0.8", "protobuf==4.25.3"},
                          {}, std::chrono::seconds(280));
  if (made.code != 0) throw std::runtime_error(made.err);
  must({"protoc", "--proto_path=" + kProto, "--python_out=" + dir.path().string(), "driftd/v1/event.proto"});
  return {"env", "PYTHONPATH=" + dir.path().string(), made.out.substr(0, made.out.find('\n')),
          kFolder + "python/order_consumer.py"};
}

class ConsumerExamples : public testing::Test {
 protected:
  /// Runs the whole story with one of the programs.
  void tell(std::vector<std::string> command);

 private:
  void start(const std::string& log) {
    std::vector<std::string> words = command_;
    words.insert(words.end(), {server_.url(), "cache", dir_.file("checkpoint.json")});
    child_ = Child(words, {dir_.file(log), {{"BACKEND_CONFIG_PATH", file_}}, {}});
  }
  std::int64_t orders() { return std::atoll(redis_.command({"GET", "orders"}).c_str()); }
  bool counts_on() {
    const auto before = orders();
    return eventually([&] { return orders() > before + 5; }, std::chrono::seconds(60));
  }
  bool received(const std::string& log, std::int64_t count) {
    return eventually([&] { return lines(log) == count; }, std::chrono::seconds(60));
  }
  std::int64_t lines(const std::string& log) const {
    std::int64_t out = 0;
    const std::string text = read_file(dir_.file(log)),
                      line = "Received backend change event: CREDENTIAL_ROTATED for backend cache";
    for (std::size_t at = 0; (at = text.find(line, at)) != text.npos; ++at) ++out;
    return out;
  }
  /// Adds a password and publishes; the earlier one is removed once the program has the event.
  void rotate(std::int64_t n) {
    redis_.command({"ACL", "SETUSER", "app", ">password-" + std::to_string(n)});
    dir_.write("password.new", "password-" + std::to_string(n));
    std::filesystem::rename(dir_.file("password.new"), dir_.file("password"));
    agent_.add(rotated("cache", n));
  }
  void drop_password(std::int64_t n) {
    redis_.command({"ACL", "SETUSER", "app", "<password-" + std::to_string(n)});
    redis_.command({"CLIENT", "KILL", "USER", "app"});  // whoever still uses it must log in again
  }

  RedisServer redis_;
  NatsServer server_;
  RelayRunner agent_{nats_sink(at(server_))};
  TempDir dir_;
  std::string file_;
  std::vector<std::string> command_;
  Child child_;
};

void ConsumerExamples::tell(std::vector<std::string> command) {
  command_ = std::move(command);
  redis_.command({"ACL", "SETUSER", "app", "on", ">password-0", "~*", "+@all"});
  dir_.write("password", "password-0");
  dir_.write("username", "app\n");
  file_ = dir_.write("backends.json", nlohmann::json{{"state_store",
                                                      {{"type", "redis"},
                                                       {"endpoint", redis_.address()},
                                                       {"credentials",
                                                        {{"username", "file:" + dir_.file("username")},
                                                         {"password", "file:" + dir_.file("password")}}}}}}
                                          .dump());
  const auto log = [&] { return read_file(dir_.file("log")); };
  start("log");
  ASSERT_TRUE(counts_on()) << log();
  rotate(1);
  ASSERT_TRUE(received("log", 1)) << log();
  ASSERT_TRUE(counts_on()) << log();
  drop_password(0);
  ASSERT_TRUE(counts_on()) << "the program works with the new password: " << log();

  // The same event again, as after `driftd replay`, and then a later one: only the later one is applied.
  auto replay = rotated("cache", 1);
  replay.replay = true;
  agent_.add(replay);
  rotate(2);
  ASSERT_TRUE(received("log", 2)) << log();
  ASSERT_TRUE(counts_on()) << log();

  // What happens while it is away is caught up, what it had done is not done again.
  child_.kill();
  rotate(3);
  ASSERT_TRUE(delivered(agent_, 4));
  start("later");
  ASSERT_TRUE(received("later", 1)) << read_file(dir_.file("later"));
  drop_password(2);
  ASSERT_TRUE(counts_on()) << read_file(dir_.file("later"));
  EXPECT_EQ(lines("later"), 1) << read_file(dir_.file("later"));
  EXPECT_EQ(log().find("password-"), std::string::npos) << log();
}

TEST_F(ConsumerExamples, InCppFollowsARotationSkipsAReplayAndCatchesUp) {
  TempDir dir;
  tell(cpp(dir));
}
TEST_F(ConsumerExamples, InGoFollowsARotationSkipsAReplayAndCatchesUp) {
  TempDir dir;
  tell(go(dir));
}
TEST_F(ConsumerExamples, InPythonFollowsARotationSkipsAReplayAndCatchesUp) {
  TempDir dir;
  tell(python(dir));
}

}  // namespace
}  // namespace driftd::test
