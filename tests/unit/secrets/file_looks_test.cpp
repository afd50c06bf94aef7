// SPDX-License-Identifier: Apache-2.0
// The files of many backends on a file system that hangs: what it costs the agent, and what it does not.
#include <gmock/gmock.h>
#include <atomic>
#include <future>
#include <mutex>
#include <set>

#include "fake_sessions.hpp"
#include "loop.hpp"
#include "secrets/renewed_session.hpp"

namespace driftd::secrets {
namespace {

constexpr std::size_t kBackends = 5;

class Looks : public testing::Test {
 protected:
  Looks() {
    RenewalOptions options{loop_.core.get_executor(),
                           io_.get_executor(),
                           &clock_,
                           std::make_shared<FakeFactory>(loop_.core.get_executor(), seen_),
                           {},
                           {}};
    looks_ = options.looks;
    looks_->look = [this](const std::vector<FileSecrets::FileToRead>& asked, bool) {
      ++began_;
      ice_.wait();
      const std::lock_guard lock(mutex_);
      for (const auto& one : asked) looked_.insert(one.file.string());
      return std::vector<FileSecrets::Found>(asked.size());
    };
    config::Config config;
    for (std::size_t i = 0; i < kBackends; ++i) {
      core::BackendSpec backend;
      backend.name = "b" + std::to_string(i);
      config.backends.push_back(backend);
      config.file_uses.push_back({backend.name, "password", "driftd-secret-1", "/hung/" + backend.name});
    }
    const auto factory = with_secrets(std::move(options), config);
    factory->on_event([this](core::SessionEvent event) { events_.push_back(event.what + " " + event.message); });
    for (const auto& backend : config.backends) {
      core::SessionSpec spec;
      spec.backend = backend.name;
      sessions_.push_back(*factory->open(spec));
    }
  }
  ~Looks() override {
    thaw();
    for (const auto& session : sessions_) loop_.wait(stopped(session));
    io_.join();
  }
  static Task<bool> stopped(std::shared_ptr<core::Session> session) {
    co_await session->stop();
    co_return true;
  }
  void thaw() {
    if (!std::exchange(thawed_, true)) frozen_.set_value();
  }
  std::size_t looked() {
    const std::lock_guard lock(mutex_);
    return looked_.size();
  }
  void cycles() {
    for (const auto& session : sessions_) {
      asio::co_spawn(loop_.core, session->info(), [this](std::exception_ptr thrown, auto answer) {
        fatal(thrown);
        answered_ += answer ? 1 : 0;
      });
    }
  }

  Loop loop_;
  asio::thread_pool io_{4};
  const SystemClock clock_;
  Seen seen_;
  std::shared_ptr<FileLooks> looks_;
  std::promise<void> frozen_;
  const std::shared_future<void> ice_{frozen_.get_future()};
  bool thawed_ = false;
  std::mutex mutex_;
  std::set<std::string> looked_;
  std::atomic<int> began_ = 0;
  std::vector<std::shared_ptr<core::Session>> sessions_;
  std::vector<std::string> events_;
  std::size_t answered_ = 0;
};

TEST_F(Looks, AFileSystemThatHangsCostsOneThreadWhoeverHasFilesOnIt) {
  cycles();
  ASSERT_TRUE(loop_.until([&] { return began_ >= 1; }));
  ASSERT_TRUE(loop_.until([&] { return answered_ == kBackends; })) << "no cycle waits for it for ever";
  std::atomic<bool> ran = false;
  asio::post(io_, [&] { ran = true; });
  EXPECT_TRUE(loop_.until([&] { return ran.load(); }, std::chrono::seconds(3))) << "others wait for a thread";
  EXPECT_EQ(began_, 1);
  thaw();
  EXPECT_TRUE(loop_.until([&] { return looked() == 1 && !looks_->since; }));
  cycles();
  EXPECT_TRUE(loop_.until([&] { return looked() == kBackends; })) << "the next cycle looks";
}

TEST_F(Looks, AFileSystemThatHangsIsToldByEachWhoseFilesAreNotFollowedUntilItAnswers) {
  cycles();
  ASSERT_TRUE(loop_.until([&] { return answered_ == kBackends; }));
  for (const auto& session : sessions_) {
    const std::string fault = session->status().secret_fault;
    EXPECT_THAT(fault, testing::MatchesRegex(
                           "secret file /hung/b.: its file system has not answered since 20.*Z; until it does, "
                           "what was read before stays in use"));
  }
  ASSERT_THAT(events_, testing::SizeIs(1)) << "once";
  EXPECT_EQ(events_[0], "secret_file_failed " + sessions_[0]->status().secret_fault);
  thaw();
  EXPECT_TRUE(loop_.until([&] { return !looks_->since; }));
  for (const auto& session : sessions_) EXPECT_EQ(session->status().secret_fault, "");
}

TEST_F(Looks, CyclesThatBeginTogetherAllLook) {
  thaw();
  cycles();
  EXPECT_TRUE(loop_.until([&] { return looked() == kBackends && answered_ == kBackends; }));
}

}  // namespace
}  // namespace driftd::secrets
