// SPDX-License-Identifier: Apache-2.0
// A worker's code cannot leave its jail. Outside of a jail the same attempts succeed.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "contract/host/core_thread.hpp"
#include "escapes/escapes.hpp"
#include "support/process.hpp"
#include "worker/jail.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

/// The record of the escaper that says whether it can read the path `folder` of its settings.
constexpr char kReadSettings[] = "read the path of the settings";
constexpr char kEscaper[] = DRIFTD_BINARY_DIR "/tests/jail/escaper.so";

/// A Unix socket that listens or receives datagrams. It is abstract if its name begins with '@'.
class UnixListener {
 public:
  UnixListener(const std::string& name, int type) : fd_(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1));
    const bool bound = ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0;
    if (!bound || (type == SOCK_STREAM && ::listen(fd_, 64) != 0))
      ADD_FAILURE() << name << ": " << std::strerror(errno);
  }
  ~UnixListener() { ::close(fd_); }
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  int fd_;
};

/// Makes files and sockets like those of an agent, in a temporary folder: the targets of the attempts.
class Escape : public ::testing::Test {
 protected:
  Escape() {
    for (const char* folder : {"data", "plugins", "run", "outside", "outside/inner"})
      fs::create_directory(folder_.path() / folder);
    for (const char* file : {"data/driftd.db", "data/driftd.db-wal", "data/installation.key", "outside/victim",
                             "outside/emptied", "outside/spare"}) {
      folder_.write(file, "secret");
    }
    fs::copy_file(kEscaper, folder_.file("plugins/own.so"));
    targets_.data_dir = folder_.file("data");
    targets_.plugin_folder = folder_.file("plugins");
    targets_.outside = folder_.file("outside");
    targets_.own_library = folder_.file("plugins/own.so");
    targets_.agent_socket = folder_.file("run/agent.sock");
    targets_.datagram_socket = folder_.file("datagram.sock");
    targets_.abstract_name = fs::path(folder_.path()).filename().string() + "-abstract";
    stream_ = std::make_unique<UnixListener>(targets_.agent_socket, SOCK_STREAM);
    datagram_ = std::make_unique<UnixListener>(targets_.datagram_socket, SOCK_DGRAM);
    abstract_ = std::make_unique<UnixListener>("@" + targets_.abstract_name, SOCK_STREAM);
    options_ = host_options(core_);
    options_.jail_kills = false;
  }
  void TearDown() override {
    for (const auto& session : sessions_) core_.run(session->stop());
  }

  core::Session& open(const std::string& file, const std::string& settings) {
    if (!factory_) factory_ = host::make_session_factory(options_);
    core::SessionSpec spec;
    spec.backend = "jailed";
    spec.provider = file;
    spec.settings_json = settings;
    sessions_.push_back(factory_->open(spec).value());
    return *sessions_.back();
  }
  /// Runs the attempts in a worker. Returns name → errno, as the provider reports them.
  std::map<std::string, int> inside(const Json& more = Json::object()) {
    auto& sibling = open(DRIFTD_BINARY_DIR "/tests/providers/tester.so", R"({"count":1})");
    EXPECT_TRUE(core_.run(sibling.info()));
    targets_.agent = ::getpid();
    targets_.sibling = sibling.status().pid;
    Json settings = Json::parse(escapes::render_targets(targets_));
    settings.update(more);
    const auto pages = std::make_shared<Pages>();
    auto& session = open(targets_.own_library, settings.dump());
    const auto outcome = core_.run(session.refresh({}, keep(pages)));
    EXPECT_TRUE(outcome) << outcome.error().message;
    jail_ = session.status().jail;
    EXPECT_EQ(session.status().restarts, 0u);
    std::map<std::string, int> out;
    for (const auto& page : pages->all) {
      for (const auto& record : page.records) out[record.id.id] = Json::parse(record.body)["errno"].get<int>();
    }
    return out;
  }

  TempDir folder_;
  escapes::Targets targets_;
  std::unique_ptr<UnixListener> stream_, datagram_, abstract_;
  Core core_;
  host::HostOptions options_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::vector<std::shared_ptr<core::Session>> sessions_;
  std::string jail_;
};

TEST_F(Escape, EveryAttemptInsideTheJailIsBlocked) {
  const auto results = inside();
  EXPECT_EQ(results.size(), escapes::attempts().size() + 1) << "one more: the attempt of the constructor";
  for (const auto& [name, error] : results) {
    EXPECT_TRUE(escapes::is_blocked(error)) << name << ": " << (error == 0 ? "it succeeded" : std::strerror(error));
  }
  EXPECT_FALSE(fs::exists(ESCAPE_CONSTRUCTOR_FILE));
  EXPECT_EQ(read_file(targets_.data_dir + "/driftd.db"), "secret");
  EXPECT_EQ(read_file(targets_.outside + "/emptied"), "secret");
  EXPECT_THAT(jail_, ::testing::MatchesRegex("landlock [0-9]+, seccomp"));
}

/// Proves that the attempts themselves work. If none could succeed anywhere, this suite would prove nothing.
TEST_F(Escape, TheSameAttemptsGetThroughOutside) {
  const Child agent({"/bin/cat", "/dev/zero"}, {});
  const Child sibling({"/bin/cat", "/dev/zero"}, {});
  targets_.agent = agent.pid();
  targets_.sibling = sibling.pid();
  const Output out = run({DRIFTD_BINARY_DIR "/tests/jail/outside", escapes::render_targets(targets_)});
  ASSERT_EQ(out.code, 0) << out.err;
  std::istringstream lines(out.out);
  int error = 0;
  int root = 0;
  int feature = 0;
  int succeeded = 0;
  std::size_t tried = 0;
  for (std::string name; lines >> error >> root >> feature && std::getline(lines >> std::ws, name);) {
    ++tried;
    succeeded += error == 0 ? 1 : 0;
    bool may_fail = feature != 0 || (root != 0 && ::geteuid() != 0);
#ifdef __SANITIZE_THREAD__
    // ThreadSanitizer has a thread of its own, and the kernel refuses this call in a process with two threads.
    may_fail = may_fail || (name == "unshare user" && error == EINVAL);
#endif
    EXPECT_TRUE(error == 0 || may_fail) << name << ": " << std::strerror(error);
    if (error != 0)
      std::printf("impossible on this machine even without a jail: %s (%s)\n", name.c_str(), std::strerror(error));
  }
  EXPECT_EQ(tried, escapes::attempts().size());
  EXPECT_GE(succeeded, 80) << "of " << escapes::attempts().size();
}

TEST_F(Escape, ADeniedCallKillsTheWorkerWhereTheHostSaysSo) {
  options_.jail_kills = true;
  auto& session = open(kEscaper, R"({"only":"execve"})");
  const auto outcome = core_.run(session.refresh({}, keep(std::make_shared<Pages>())));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("killed by signal 31 (Bad system call) in refresh"));
}

TEST_F(Escape, SystemCallsOfAForeignTableKillInAnyMode) {
  for (const char* table : {"x32", "i386"}) {
    auto& session = open(kEscaper, Json{{"only", table}}.dump());
    const auto outcome = core_.run(session.refresh({}, keep(std::make_shared<Pages>())));
    ASSERT_FALSE(outcome) << table;
    EXPECT_THAT(outcome.error().message, HasSubstr("killed by signal 31 (Bad system call) in refresh"));
  }
}

TEST_F(Escape, AUnixSocketInTheSettingsOpensUnixSocketsAndNothingElse) {
  const auto results = inside({{"socket", targets_.agent_socket}});
  EXPECT_EQ(results.at("agent's Unix socket"), 0);
  EXPECT_THAT(jail_, HasSubstr(", Unix sockets"));
  for (const auto& [name, error] : results) {
    EXPECT_TRUE(escapes::is_blocked(error) || name == "agent's Unix socket") << name << ": " << error;
  }
}

TEST_F(Escape, AFolderInTheSettingsIsReadableAndNothingElse) {
  auto results = inside({{"folder", targets_.outside}});
  EXPECT_EQ(results.at(kReadSettings), 0) << "the folder is not readable";
  results.erase(kReadSettings);
  EXPECT_EQ(results.size(), escapes::attempts().size() + 1) << "one more: the attempt of the constructor";
  for (const auto& [name, error] : results) {
    const bool inotify = name == "inotify on data_dir";  // landlock does not cover inotify, see the threat model
    EXPECT_TRUE(escapes::is_blocked(error) || inotify) << name << ": " << error;
  }
}

TEST_F(Escape, AWorkerIsKnownByItsPidAlsoAMomentAfterItsEnd) {
  auto& session = open(kEscaper, "{}");
  ASSERT_TRUE(core_.run(session.info()));
  const int pid = session.status().pid;
  EXPECT_TRUE(host::is_worker(pid));
  EXPECT_FALSE(host::is_worker(::getpid()));
  core_.run(session.stop());
  EXPECT_TRUE(host::is_worker(pid)) << "the agent may still read what the worker sent before its end";
}

TEST_F(Escape, AWorkerHasNoCapabilityEvenWhenRootStartedIt) {
  auto& session = open(kEscaper, "{}");
  ASSERT_TRUE(core_.run(session.info()));
  const std::string status = read_file("/proc/" + std::to_string(session.status().pid) + "/status");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t0000000000000000"));
  const std::string bounding = "CapBnd:\t0000000000000000";  // only root may empty it
  EXPECT_TRUE(::geteuid() != 0 || status.find(bounding) != std::string::npos) << status;
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
}

TEST_F(Escape, WhereMemoryRunsOutAWorkerGoesFirst) {
  auto& session = open(kEscaper, "{}");
  ASSERT_TRUE(core_.run(session.info()));
  EXPECT_EQ(read_file("/proc/" + std::to_string(session.status().pid) + "/oom_score_adj"), "1000\n");
}

/// A setting names a file, for example a CA's, in the folder that contains the agent's own files.
TEST_F(Escape, ASettingOpensNothingOfTheAgentsOwn) {
  options_.own = {targets_.data_dir, targets_.data_dir + "/installation.key"};
  const std::string file = folder_.write("data/extra.pem", "public");
  auto results = inside({{"folder", file}});
  EXPECT_EQ(results.at(kReadSettings), 0) << "the file of the settings is not readable";
  results.erase(kReadSettings);
  for (const auto& [name, error] : results) {
    const bool inotify = name == "inotify on data_dir";
    EXPECT_TRUE(escapes::is_blocked(error) || inotify) << name << ": " << error;
  }
  auto& session = open(targets_.own_library, Json{{"folder", targets_.data_dir}}.dump());
  const auto outcome = core_.run(session.refresh({}, keep(std::make_shared<Pages>())));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(
      outcome.error().message,
      HasSubstr(targets_.data_dir + ": a plugin may not read this folder, because it contains the agent's own "));
}

TEST_F(Escape, ASettingThatIsAPathAndASocketOpensNoUnixSocket) {
  const auto results = inside({{"both", targets_.agent_socket}});
  EXPECT_TRUE(escapes::is_blocked(results.at("agent's Unix socket")));
  EXPECT_EQ(jail_.find("Unix"), std::string::npos) << jail_;
}

}  // namespace
}  // namespace driftd::test
