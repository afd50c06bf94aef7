// SPDX-License-Identifier: Apache-2.0
// A backend whose password comes from a real file, with sessions that only remember what they were opened with.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <future>

#include "fake_sessions.hpp"
#include "loop.hpp"
#include "secrets/file_secrets.hpp"
#include "secrets/renewed_session.hpp"

namespace driftd::secrets {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class Files : public testing::Test {
 protected:
  Files() { put("one"); }
  ~Files() override {
    if (session_) loop_.wait(stopped(session_));
  }
  static Task<bool> stopped(std::shared_ptr<core::Session> session) {
    co_await session->stop();
    co_return true;
  }
  std::string path() const { return folder_.file("password"); }
  /// Replaces the file by rename.
  void put(const std::string& text) const {
    const std::string fresh = folder_.write("fresh", text);
    fs::permissions(fresh, fs::perms(0600));
    fs::rename(fresh, path());
  }
  config::Config config(const std::string& file) const {
    config::Config out;
    core::BackendSpec backend;
    backend.name = "orders";
    backend.settings_json = R"({"password":"driftd-secret-1"})";
    out.backends = {backend};
    out.file_uses = {{"orders", "password", "driftd-secret-1", file}};
    return out;
  }
  void open(const config::Config& config) {
    RenewalOptions options{loop_.core.get_executor(),
                           loop_.io.get_executor(),
                           &clock_,
                           std::make_shared<FakeFactory>(loop_.core.get_executor(), seen_),
                           {},
                           {}};
    options.looks->look = [this](const std::vector<FileSecrets::FileToRead>& asked, bool refused) {
      auto found = FileSecrets::look(asked, refused);
      if (const auto then = std::exchange(after_look_, nullptr)) then();
      return found;
    };
    factory_ = with_secrets(std::move(options), config);
    factory_->on_event([this](core::SessionEvent event) {
      events_.push_back(event.what + " " + event.backend + " " + event.message);
    });
    core::SessionSpec spec;
    spec.backend = "orders";
    spec.secrets = {{"driftd-secret-1", "one"}};
    session_ = *factory_->open(spec);
    session_->on_change([this] { ++changes_; });
  }
  void open() { open(config(path())); }
  /// Refreshes as the engine does. Returns the password that was used, or the error.
  std::string cycle() {
    loop_.wait(session_->info());
    const std::size_t before = seen_.refreshed.size();
    const auto outcome = loop_.wait(session_->refresh({}, {}));
    if (!outcome) return "no answer";
    if (!*outcome) return (*outcome).error().message;
    return seen_.refreshed.size() > before ? seen_.refreshed.back() : "not asked";
  }
  std::string fault() const { return session_->status().secret_fault; }

  Loop loop_;
  const test::TempDir folder_;
  const SystemClock clock_;
  Seen seen_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::vector<std::string> events_;
  std::function<void()> after_look_;  ///< once
  int changes_ = 0;
};

TEST_F(Files, AFileThatStaysOpensOneSession) {
  open();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(seen_.opened, ElementsAre("one"));
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(Files, AReplacedFileIsUsedByTheCycleThatFindsIt) {
  open();
  ASSERT_EQ(cycle(), "one");
  put("two\n");
  EXPECT_EQ(cycle(), "two");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two"));
  EXPECT_TRUE(loop_.until([&] { return seen_.stopped.size() == 1; })) << "the old one ends";
  EXPECT_EQ(changes_, 0) << "nothing had failed";
}

TEST_F(Files, AFileWrittenInPlaceIsFollowed) {
  open();
  ASSERT_EQ(cycle(), "one");
  folder_.write("password", "two");
  EXPECT_EQ(cycle(), "two");
}

TEST_F(Files, HalfOfAFileThatIsWrittenInPlaceIsNeverTaken) {
  open();
  ASSERT_EQ(cycle(), "one");
  folder_.write("password", "tw");
  after_look_ = [&] { folder_.write("password", "two"); };
  EXPECT_EQ(cycle(), "two");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two"));
}

TEST_F(Files, AMomentWithoutTextOrWithoutAFileIsNoFault) {
  open();
  ASSERT_EQ(cycle(), "one");
  folder_.write("password", "");
  after_look_ = [&] { folder_.write("password", "two"); };
  EXPECT_EQ(cycle(), "two");
  fs::remove(path());
  after_look_ = [&] { put("three"); };
  EXPECT_EQ(cycle(), "three");
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two", "three"));
}

TEST_F(Files, WhatChangedBetweenTheLoadAndTheFirstCycleIsSeen) {
  open();
  put("two");
  EXPECT_EQ(cycle(), "two");
}

TEST_F(Files, TheSwitchOfAMountedKubernetesSecretIsFollowed) {
  for (const char* version : {"1", "2"}) fs::create_directory(folder_.file(std::string("..") + version));
  folder_.write("..1/key", "one");
  folder_.write("..2/key", "two");
  fs::create_symlink("..1", folder_.file("..data"));
  fs::create_symlink("..data/key", folder_.file("key"));
  open(config(folder_.file("key")));
  ASSERT_EQ(cycle(), "one");
  fs::create_symlink("..2", folder_.file("..data_tmp"));
  fs::rename(folder_.file("..data_tmp"), folder_.file("..data"));
  EXPECT_EQ(cycle(), "two");
}

TEST_F(Files, AHealthProbeFindsItToo) {
  open();
  ASSERT_EQ(cycle(), "one");
  put("two");
  EXPECT_TRUE(loop_.until([&] {
    loop_.wait(session_->health());
    return seen_.opened.size() == 2;
  }));
}

TEST_F(Files, OneThatIsGoneLeavesInUseWhatWasReadAndSaysSoOnce) {
  open();
  ASSERT_EQ(cycle(), "one");
  fs::remove(path());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cycle(), "one");
  EXPECT_EQ(fault(), "setting password: secret file " + path() +
                         " cannot be read: No such file or directory; what was read before stays in use");
  EXPECT_THAT(events_, ElementsAre("secret_file_failed orders " + fault()));
  put("two");
  EXPECT_EQ(cycle(), "two");
  EXPECT_EQ(fault(), "");
  EXPECT_THAT(events_, SizeIs(1));
}

TEST_F(Files, OneThatIsUnfitLeavesInUseWhatWasRead) {
  open();
  ASSERT_EQ(cycle(), "one");
  put("two");
  fs::permissions(path(), fs::perms(0622));
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(fault(), HasSubstr("is not used, because others may write it"));
  put("");
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(fault(), HasSubstr(" is empty"));
  put(std::string(70'000, 'x'));
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(fault(), HasSubstr(" has more than 64 KiB"));
  fs::remove(path());
  fs::create_directory(path());
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(fault(), HasSubstr("not a regular file"));
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(cycle(), "one") << "nobody waits for a writer";
  EXPECT_THAT(fault(), HasSubstr("not a regular file"));
  for (const auto& event : events_) EXPECT_THAT(event, Not(HasSubstr("xxx")));
  fs::remove(path());
  put("two");
  EXPECT_EQ(cycle(), "two");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two"));
}

TEST_F(Files, OneThatStrangersMayWriteLaterOnLeavesInUseWhatWasReadAndSaysSo) {
  open();
  ASSERT_EQ(cycle(), "one");
  ASSERT_EQ(cycle(), "one");
  fs::permissions(path(), fs::perms(0602));
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(fault(), HasSubstr("is not used, because others may write it: " + path() + " is writable by others"));
  EXPECT_THAT(events_, ElementsAre("secret_file_failed orders " + fault()));
  folder_.write("password", "theirs");
  EXPECT_EQ(cycle(), "one");
  fs::permissions(path(), fs::perms(0600));
  folder_.write("password", "two");
  EXPECT_EQ(cycle(), "two");
  EXPECT_EQ(fault(), "");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two"));
}

/// The file was a regular one when it was inspected, but is not when it is read.
TEST_F(Files, APipeInTheFilesPlaceHoldsNoThread) {
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  auto read = std::async(std::launch::async, [file = path()] { return config::reread_secret_file(file); });
  const bool ended = read.wait_for(std::chrono::seconds(5) * test::kPatience) == std::future_status::ready;
  EXPECT_TRUE(ended) << "it waits for somebody who writes";
  if (!ended) {  // ends the refresh
    const int fd = ::open(path().c_str(), O_WRONLY | O_CLOEXEC);
    ::close(fd);
  }
  const auto text = read.get();
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::invalid);
  EXPECT_EQ(text.error().message, "secret file " + path() + " is not a regular file any more");
}

TEST_F(Files, WhereTheSystemRefusesWhatIsInUseTheFilesAreReadAgainAtOnce) {
  open();
  ASSERT_EQ(cycle(), "one");
  seen_.hold = "one";  // the file changes during the cycle, after the cycle looked at it
  seen_.fails = true;
  std::optional<Result<core::RefreshOutcome>> refused;
  asio::co_spawn(loop_.core, session_->refresh({}, {}),
                 [&](std::exception_ptr, Result<core::RefreshOutcome> out) { refused = std::move(out); });
  ASSERT_TRUE(loop_.until([&] { return seen_.refreshed.size() == 2; }));
  put("two");
  seen_.hold.clear();
  ASSERT_TRUE(loop_.until([&] { return refused.has_value(); }));
  EXPECT_FALSE(*refused);
  EXPECT_TRUE(loop_.until([&] { return changes_ == 1; })) << "everything is read at once, with the new one";
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two"));
}

/// The takeover fails, for example because the plugin's file is gone.
TEST_F(Files, AWorkerThatDoesNotAnswerTakesOverNothingAndIsTriedAgainInTheNextCycle) {
  open();
  ASSERT_EQ(cycle(), "one");
  seen_.mute = "two";
  put("two");
  EXPECT_EQ(cycle(), "one") << "the old one answers";
  EXPECT_THAT(seen_.stopped, ElementsAre("two"));
  EXPECT_EQ(fault(),
            "a worker with the new secret does not answer: there is no plugin; what was read before stays in use until "
            "one does");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two")) << "once a cycle";
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two", "two"));
  seen_.mute.clear();
  EXPECT_EQ(cycle(), "two");
  EXPECT_EQ(fault(), "");
  EXPECT_TRUE(loop_.until([&] { return seen_.stopped.size() == 3; }));
  EXPECT_THAT(seen_.stopped, ElementsAre("two", "two", "one"));
  EXPECT_EQ(cycle(), "two");
  EXPECT_THAT(seen_.opened, SizeIs(4)) << "what serves is opened no more";
}

TEST_F(Files, OneThatCannotBeOpenedTakesOverNothingAndIsTriedAgainInTheNextCycle) {
  open();
  ASSERT_EQ(cycle(), "one");
  seen_.unopened = "two";
  put("two");
  EXPECT_EQ(cycle(), "one");
  EXPECT_THAT(fault(), HasSubstr("no plugin for it; what was read before stays in use"));
  seen_.unopened.clear();
  EXPECT_EQ(cycle(), "two");
  EXPECT_EQ(fault(), "");
  EXPECT_THAT(seen_.stopped, Not(testing::Contains("two")));
}

TEST_F(Files, ARefusedSecretIsReadThoughNothingMoved) {
  FileSecrets files({{"orders", "password", "t", path()}}, {{"t", "another"}});
  auto asked = files.files_to_read();
  asked[0].was = config::mark_of(path());
  EXPECT_FALSE(FileSecrets::look(asked, false)[0].read.has_value());
  files.apply(FileSecrets::look(asked, true));
  auto again = FileSecrets::look(files.files_to_read(), false);
  again[0].at += config::kSettleTime;
  const auto news = files.apply(std::move(again));
  EXPECT_EQ(news.values.at("t"), "one");
  EXPECT_THAT(news.changed, ElementsAre("setting password (" + path() + ")")) << "without the text";
}

TEST_F(Files, TheSessionGetsTheReferencesOfPlainSettingsToo) {
  auto settings = config(path());
  settings.backends[0].settings_json = R"({"address":"driftd-secret-1"})";
  open(settings);
  EXPECT_THAT(seen_.settings, ElementsAre(R"({"address":"driftd-secret-1"})"))
      << "whoever opens the provider reveals it, each time";
}

TEST_F(Files, AProgramBesideAFileWaitsForNobody) {
  const Scripts scripts;
  auto both = config(path());
  auto use = Scripts::use({scripts.script("tool", "echo token")});
  use.token = "driftd-secret-2";
  both.program_uses = {use};
  open(both);
  ASSERT_EQ(cycle(), "one");
  put("two");
  EXPECT_EQ(cycle(), "two");
  EXPECT_THAT(seen_.opened, ElementsAre("one", "two"));
}

}  // namespace
}  // namespace driftd::secrets
