// SPDX-License-Identifier: Apache-2.0
// Calls that may never return from the kernel: a look-up in a file system that does not answer, and the wait for a
// worker that SIGKILL does not end.
#include <gmock/gmock.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstring>
#include <future>

#include "contract/host/core_thread.hpp"
#include "host/jail_path_lookup.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The look-up of the paths of a backend whose name starts with `hung` blocks until `unblock_lookups`.
class Hung : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = host_options(core_);
    options_.plugin_dirs = {DRIFTD_BINARY_DIR "/tests/lives"};
    options_.grace = std::chrono::milliseconds(300);
    options_.restart_first = options_.restart_max = std::chrono::milliseconds(5);
    options_.path_lookup = std::make_shared<host::JailPathLookup>();
    options_.path_lookup->find = [unblocked = unblocked_](const host::JailPathLookup::Request& asked) {
      if (asked.backend.starts_with("hung")) unblocked.wait();
      return host::JailPaths();
    };
    factory_ = host::make_session_factory(options_);
  }
  void TearDown() override {
    unblock_lookups();
    for (const auto& session : sessions_) core_.run(session->stop());
  }
  void unblock_lookups() {
    if (!std::exchange(is_unblocked_, true)) unblock_.set_value();
  }
  core::Session& open(const std::string& backend, const std::string& settings = "{}") {
    core::SessionSpec spec;
    spec.backend = backend;
    spec.provider = DRIFTD_BINARY_DIR "/tests/lives/v1.so";
    spec.settings_json = settings;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    sessions_.push_back(factory_->open(spec).value());
    return *sessions_.back();
  }
  /// Returns why a refresh failed.
  std::string why(core::Session& session) {
    const auto outcome = core_.run(session.refresh({}, keep(std::make_shared<Pages>())), std::chrono::seconds(20));
    return outcome ? "it did not fail" : outcome.error().message;
  }

  Core core_;
  host::HostOptions options_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::vector<std::shared_ptr<core::Session>> sessions_;
  std::promise<void> unblock_;
  const std::shared_future<void> unblocked_{unblock_.get_future()};
  bool is_unblocked_ = false;
};

TEST_F(Hung, AFileSystemThatDoesNotAnswerHoldsNoOtherBackendAndNoStop) {
  for (int i = 0; i < 20; ++i) (void)open("hung" + std::to_string(i));
  EXPECT_EQ(why(open("fine")), "it did not fail");
  auto& hung = *sessions_.front();
  EXPECT_THAT(why(hung), HasSubstr("the file system of a path in its settings does not answer"));
  core_.run(sessions_[1]->stop(), std::chrono::seconds(20));
  unblock_lookups();
  core_.until([&] { return why(hung) == "it did not fail"; });
}

/// Traces a process from a child of this test. A killed process that is traced ends only when its tracer does, so it
/// looks like a worker that SIGKILL does not end.
class Tracer {
 public:
  explicit Tracer(pid_t traced) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      const int failed = ::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) == 0 ? 0 : errno;
      (void)!::write(ends[1], &failed, sizeof failed);
      for (;;) ::pause();
    }
    int failed = -1;
    const bool answered = ::read(ends[0], &failed, sizeof failed) == sizeof failed;
    ::close(ends[0]);
    ::close(ends[1]);
    if (!answered || failed != 0)
      throw std::runtime_error(std::string("cannot trace the worker: ") + std::strerror(failed));
  }
  ~Tracer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

 private:
  pid_t pid_ = -1;
};

TEST_F(Hung, AWorkerThatSigkillDoesNotEndIsToldAndHoldsNeitherCallsNorTheStop) {
  auto& session = open("b");
  ASSERT_EQ(why(session), "it did not fail");
  const auto pid = static_cast<pid_t>(session.status().pid);
  {
    const Tracer tracer(pid);
    ::kill(pid, SIGKILL);
    EXPECT_THAT(why(session), AllOf(HasSubstr("process " + std::to_string(pid)), HasSubstr("does not end")));
    EXPECT_NE(session.status().state, "running");
    EXPECT_FALSE(core_.run(session.health(), std::chrono::seconds(20)));
    EXPECT_THAT(why(session), HasSubstr("does not end")) << "no second worker is started beside it";
  }
  core_.until([&] { return why(session) == "it did not fail"; });
}

TEST_F(Hung, ASessionWhoseWorkerDoesNotEndStops) {
  auto& session = open("b");
  ASSERT_EQ(why(session), "it did not fail");
  const auto pid = static_cast<pid_t>(session.status().pid);
  const Tracer tracer(pid);
  ::kill(pid, SIGSTOP);  // so that it cannot answer the request to stop
  core_.run(session.stop(), std::chrono::seconds(20));
}

}  // namespace
}  // namespace driftd::test
