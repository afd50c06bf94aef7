// SPDX-License-Identifier: Apache-2.0
// The jail itself. It cannot be left again, so children of this test enter it.
#include "worker/jail.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netdb.h>
#include <seccomp.h>
#include <sys/wait.h>
#include <unistd.h>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/agent.hpp"
#include "support/process.hpp"

namespace driftd::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Runs `body` in a child process and returns the text that it returned.
std::string in_child(std::string (*body)()) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string output = body();
    (void)!::write(ends[1], output.data(), output.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string out;
  char buffer[512];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return out;
}

/// Enters the jail. Returns its description, or `<code>: <message>`.
std::string lock(const JailSpec& spec) {
  const auto locked = lock_process(spec);
  return locked ? *locked : std::string(render(locked.error().code)) + ": " + locked.error().message;
}

/// Makes landlock fail with this errno. ENOSYS: the kernel lacks it. EPERM: a container's policy denies it. EOPNOTSUPP:
/// the kernel's command line switched it off.
void hide_landlock(std::uint32_t error = ENOSYS) {
  scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ALLOW);
  ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(landlock_create_ruleset), 0);
  ::seccomp_load(filter);
  ::seccomp_release(filter);
}

TEST(Jail, AKernelWithoutLandlockIsSaidAndTheRestHolds) {
  const std::string output = in_child([] {
    hide_landlock();
    std::string out = describe_kernel_jail() + "; " + lock({});
    return out + (::fork() < 0 ? "; no fork" : "; forked");
  });
  EXPECT_EQ(output, "no landlock (kernel), seccomp; no landlock (kernel), seccomp; no fork");
}

TEST(Jail, WhyThereIsNoLandlockIsSaid) {
  const std::string denied = in_child([] {
    hide_landlock(EPERM);
    return describe_kernel_jail();
  });
  EXPECT_THAT(denied, StartsWith("no landlock (denied: a seccomp policy of the container or unit"));
  const std::string off = in_child([] {
    hide_landlock(EOPNOTSUPP);
    return describe_kernel_jail();
  });
  EXPECT_THAT(off, StartsWith("no landlock (switched off: lsm="));
}

/// Runs `driftd COMMAND` where landlock is denied. Returns its exit code and its stderr.
std::string without_landlock(const std::string& jail, const char* command) {
  test::TempDir folder;
  const std::string config =
      folder.write("driftd.yaml", "agent: { jail: " + jail + ", data_dir: " + folder.file("data") +
                                      " }\nadmin: { listen: \"\", socket: " + folder.file("s") + " }\n");
  const std::string errors = folder.file("err");
  const pid_t child = ::fork();
  if (child == 0) {
    hide_landlock(EPERM);
    const int fd = ::open(errors.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ::dup2(fd, STDERR_FILENO);
    ::execl(test::Agent::binary().c_str(), "driftd", "--config", config.c_str(), command, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return std::to_string(WEXITSTATUS(status)) + ": " + test::read_file(errors);
}

TEST(Jail, ThatIsRequiredAndNotThereEndsTheAgentWithTheReason) {
  for (const char* command : {"run", "once", "validate"}) {
    const std::string output = without_landlock("required", command);
    EXPECT_THAT(output, StartsWith("78: ")) << command;
    EXPECT_THAT(
        output,
        HasSubstr("'jail' of 'agent' is required, and here workers get: no landlock (denied: a seccomp policy"));
    EXPECT_THAT(output, HasSubstr("agent.jail: best-effort"));
  }
  EXPECT_THAT(without_landlock("best-effort", "once"), StartsWith("0: "));
}

TEST(Jail, EachOfTheTwoIsNamedOrItsAbsence) {
  EXPECT_EQ(jail::render(7, true), "landlock 7, seccomp");
  EXPECT_EQ(jail::render(0, false), "no landlock (kernel), no seccomp (kernel)");
}

/// Landlock restricts only the thread that enters it and the threads that this thread makes later.
TEST(Jail, ASecondThreadRefusesTheJail) {
  const std::string output = in_child([] {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    const auto wait_until_done = [&] {
      std::unique_lock guard(mutex);
      changed.wait(guard, [&] { return done; });
    };
    std::thread second(wait_until_done);
    std::thread third(wait_until_done);
    const std::string out = lock({});
    {
      const std::lock_guard guard(mutex);
      done = true;
    }
    changed.notify_all();
    second.join();
    third.join();
    return out;
  });
  EXPECT_THAT(output, StartsWith("denied: worker: expected one thread before the jail, found "));
}

TEST(Jail, NamesAreResolvedInsideAlsoWhereADeniedCallKills) {
  const std::string output = in_child([] {
    JailSpec spec;
    spec.kills = true;
    const std::string locked = lock(spec);
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo("localhost", "postgresql", nullptr, &found);
    return locked + (error == 0 ? "; resolved" : std::string("; ") + ::gai_strerror(error));
  });
  EXPECT_THAT(output, HasSubstr("seccomp")) << "the jail was entered";
  EXPECT_THAT(output, HasSubstr("; resolved"));
}

}  // namespace
}  // namespace driftd::worker
