// SPDX-License-Identifier: Apache-2.0
// One run of a program: what it gets, how it ends, and that no process of it is left.
#include "secrets/program_run.hpp"

#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

#include "loop.hpp"

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

class Run : public testing::Test {
 protected:
  Result<std::string> run(const config::ProgramUse& use, milliseconds most = seconds(20)) {
    run_ = std::make_shared<ProgramRun>(loop_.core.get_executor(), loop_.io.get_executor(), use);
    auto out = loop_.wait(ProgramRun::run(run_), most);
    if (!out) ADD_FAILURE() << "it did not return";
    return out.value_or(fail(Code::internal, "it did not return"));
  }
  Result<std::string> sh(const std::string& body) { return run(Scripts::use({scripts_.script("tool", body)})); }
  std::string refusal(const std::string& body) {
    const auto out = sh(body);
    return out ? "it answered" : out.error().message.substr(scripts_.folder.file("tool").size() + 1);
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  /// Checks that the process whose pid a script wrote to a file is gone.
  bool gone(const std::string& file) const {
    std::ifstream in(scripts_.folder.file(file));
    pid_t pid = 0;
    return static_cast<bool>(in >> pid) && ::kill(pid, 0) != 0;
  }

  Loop loop_;
  Scripts scripts_;
  std::shared_ptr<ProgramRun> run_;
};

TEST_F(Run, AnswersItsStandardOutputAndNoShellReadsItsWords) {
  const auto out = run(Scripts::use({"/bin/echo", "$HOME; *", "a b"}));
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(*out, "$HOME; * a b\n");
}

TEST_F(Run, EnvironmentIsPathHomeLangAndWhatIsNamed) {
  ::setenv("PATH", "/usr/bin:/bin", 1);
  ::setenv("HOME", "/tmp", 1);
  ::setenv("LANG", "C.UTF-8", 1);
  ::setenv("DRIFTD_TEST_PASSED", "one", 1);
  ::setenv("DRIFTD_TEST_SECRET", "canary", 1);
  auto use = Scripts::use({"/usr/bin/env"});
  use.program.environment = {"DRIFTD_TEST_PASSED", "DRIFTD_TEST_SET=a=b", "DRIFTD_TEST_ABSENT", "LANG=C"};
  const auto out = run(use);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(lines(*out), UnorderedElementsAre("PATH=/usr/bin:/bin", "HOME=/tmp", "DRIFTD_TEST_PASSED=one",
                                                "DRIFTD_TEST_SET=a=b", "LANG=C"));
}

TEST_F(Run, HasThreeDescriptorsASessionOfItsOwnAndDefaultSignals) {
  const int leaked = ::dup(1);  // not close-on-exec
  const auto descriptors = run(Scripts::use({"/bin/ls", "/proc/self/fd"}));
  ::close(leaked);
  ASSERT_TRUE(descriptors) << descriptors.error().message;
  EXPECT_THAT(lines(*descriptors), UnorderedElementsAre("0", "1", "2", "3")) << "3 is ls's own";
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const auto stat = run(Scripts::use({"/bin/cat", "/proc/self/stat", "/proc/self/status"}));
  std::signal(SIGPIPE, before);
  ASSERT_TRUE(stat) << stat.error().message;
  std::istringstream in(*stat);
  std::string name, state;
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  in >> pid >> name >> state >> parent >> group >> session;
  EXPECT_EQ(group, pid);
  EXPECT_EQ(session, pid);
  EXPECT_EQ(parent, ::getpid());
  const std::size_t ignored = stat->find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos);
  EXPECT_EQ(std::stoull(stat->substr(ignored + 8, 16), nullptr, 16) & (1ull << (SIGPIPE - 1)), 0u);
}

TEST_F(Run, SaysHowItFailed) {
  EXPECT_EQ(refusal("echo answer; echo first >&2; echo no such profile >&2; exit 3"), "exited with 3");
  EXPECT_THAT(std::string(run_->errors()), HasSubstr("no such profile"));
  EXPECT_EQ(run_->output(), "answer\n") << "to take it out of what is shown";
  EXPECT_EQ(refusal("kill -9 $$"), "was killed by signal 9 (Killed)");
}

TEST_F(Run, AnAnswerMayHave64KiBAndNoMore) {
  const auto most = sh("head -c 65536 /dev/zero | tr '\\0' x");
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->size(), 65536u);
  EXPECT_EQ(refusal("head -c 65537 /dev/zero | tr '\\0' x"), "answered more than 64 KiB");
  EXPECT_EQ(refusal("exec yes"), "answered more than 64 KiB") << "and is killed";
}

TEST_F(Run, ErrorsWithoutEndAreKeptInPart) {
  EXPECT_EQ(refusal("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the last >&2; exit 1"),
            "exited with 1");
  EXPECT_EQ(run_->errors(), "\nthe last\n");
}

TEST_F(Run, OneThatHangsIsKilledWithAllOfItsGroup) {
  auto use = Scripts::use(
      {scripts_.script("tool", "/bin/sleep 1000 &\necho $! > " + scripts_.folder.file("child") + "\nwait")});
  use.program.timeout = milliseconds(500);
  const auto out = run(use);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, Code::deadline);
  EXPECT_EQ(out.error().message, use.program.path + " did not end within 0.5 s: killed");
  EXPECT_TRUE(loop_.until([&] { return gone("child"); })) << "what it had started lives on";
}

TEST_F(Run, WhatItLeavesBehindEndsWithItAndNoZombieStays) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0) << "as if this were init in a container";
  const auto out = sh("/bin/sleep 1000 &\necho $! > " + scripts_.folder.file("child") + "\necho answer");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(*out, "answer\n");
  EXPECT_TRUE(gone("child"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(Run, OneThatEscapesItsGroupIsNotWaitedFor) {
  const auto out =
      sh("setsid /bin/sh -c 'echo $$ > " + scripts_.folder.file("child") + "; exec /bin/sleep 60' &\nwhile [ ! -s " +
         scripts_.folder.file("child") + " ]; do :; done\necho answer");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(*out, "answer\n");
  std::ifstream in(scripts_.folder.file("child"));
  pid_t pid = 0;
  ASSERT_TRUE(in >> pid);
  EXPECT_EQ(::kill(pid, SIGKILL), 0) << "it lives, with our pipe";
}

TEST_F(Run, OneThatEscapesAndGoesOnWritingIsNotWaitedFor) {
  const std::string child = scripts_.folder.file("child");
  const auto out = sh("setsid /bin/sh -c 'echo $$ > " + child + "; while :; do echo noise >&2; done' &\nwhile [ ! -s " +
                      child + " ]; do :; done\necho answer");
  std::ifstream in(child);
  pid_t pid = 0;
  ASSERT_TRUE(in >> pid);
  EXPECT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(*out, "answer\n");
}

TEST_F(Run, WithFewDescriptorsItAnswersOrFailsAndNeverWritesToOurOwnOutput) {
  const auto use = Scripts::use({scripts_.script("tool", "echo answer")});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{std::min<rlim_t>(before.rlim_max, 256), before.rlim_max};
  ASSERT_TRUE(run(use)) << "the loop has its own descriptors after this";
  ASSERT_FALSE(run(Scripts::use({scripts_.script("fails", "exit 1")})))
      << "UBSan looks at a class once, by two descriptors";
  std::set<std::string> seen;
  for (int free = 0; free < 10; ++free) {
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<int> taken;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
    for (int i = 0; i < free; ++i, taken.pop_back()) ::close(taken.back());
    const auto out = run(use);
    for (const int fd : taken) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before);
    seen.insert(out ? *out : out.error().message.substr(use.program.path.size()));
  }
  EXPECT_THAT(seen, IsSupersetOf({"answer\n", " cannot be run: Too many open files"}));
  EXPECT_FALSE(seen.contains("")) << "it answered somewhere else";
}

TEST_F(Run, CancelEndsItAtOnce) {
  const auto use = Scripts::use({"/bin/sleep", "1000"});
  run_ = std::make_shared<ProgramRun>(loop_.core.get_executor(), loop_.io.get_executor(), use);
  std::optional<Result<std::string>> out;
  asio::co_spawn(loop_.core, ProgramRun::run(run_),
                 [&](std::exception_ptr, Result<std::string> value) { out = std::move(value); });
  loop_.core.restart();
  loop_.core.poll();
  run_->cancel();
  ASSERT_TRUE(loop_.until([&] { return out.has_value(); }, seconds(5)));
  EXPECT_EQ(out->error().code, Code::cancelled);
}

TEST_F(Run, AFileThatChangedHandsIsNotRun) {
  const auto use = Scripts::use({scripts_.script("tool", "echo answer")});
  ASSERT_TRUE(run(use));
  std::filesystem::permissions(use.program.path, std::filesystem::perms(0777));
  EXPECT_THAT(run(use).error().message, HasSubstr("is writable by others"));
  std::filesystem::remove(use.program.path);
  EXPECT_EQ(run(use).error().code, Code::not_found);
  std::filesystem::permissions(scripts_.folder.write("tool", "echo answer\n"), std::filesystem::perms(0755));
  EXPECT_EQ(run(use).error().message, use.program.path + " cannot be run: Exec format error") << "no shell guesses";
}

}  // namespace
}  // namespace driftd::secrets
