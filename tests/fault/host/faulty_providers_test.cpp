// SPDX-License-Identifier: Apache-2.0
// Whatever a plugin does, its own backend reports why it failed and other backends lose nothing.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <algorithm>
#include <filesystem>

#include "contract/host/core_thread.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Opens the providers of tests/faulty_providers, which are called animals here, in workers with short time limits.
class Zoo : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = host_options(core_);
    options.plugin_dirs = {DRIFTD_BINARY_DIR "/tests/faulty_providers"};
    options.grace = milliseconds(200);
    options.restart_first = milliseconds(5);
    options.restart_max = milliseconds(5);
    options.crashes_to_park = crashes_to_park_;
    factory_ = host::make_session_factory(options);
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
  }
  void TearDown() override {
    for (const auto& session : sessions_) core_.run(session->stop());
  }
  core::Session& open(const std::string& file, core::Budgets budgets = {}) {
    core::SessionSpec spec;
    spec.backend = "bad";
    spec.provider = file;
    spec.settings_json = spec.provider.find("tester") != std::string::npos ? R"({"count":3})" : "{}";
    spec.budgets = budgets;
    sessions_.push_back(factory_->open(spec).value());
    return *sessions_.back();
  }
  core::Session& faulty(const std::string& name, core::Budgets budgets = {}) {
    return open(DRIFTD_BINARY_DIR "/tests/faulty_providers/" + name + ".so", budgets);
  }
  core::Session& sound() { return open(DRIFTD_BINARY_DIR "/tests/providers/tester.so"); }
  Result<core::RefreshOutcome> refresh(core::Session& session, milliseconds deadline = milliseconds(30'000)) {
    return core_.run(session.refresh({false, {}, {}, deadline}, keep(std::make_shared<Pages>())));
  }
  /// Refreshes and returns why that failed.
  std::string failure_of(core::Session& session, milliseconds deadline = milliseconds(30'000)) {
    const auto outcome = refresh(session, deadline);
    return outcome ? "it did not fail" : std::string(render(outcome.error().code)) + ": " + outcome.error().message;
  }
  /// Loads a faulty provider and returns why that failed.
  std::string refusal(const std::string& name) {
    const auto info = core_.run(faulty(name).info());
    return info ? "it was loaded" : info.error().message;
  }

  int crashes_to_park_ = 5;
  Core core_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::vector<std::shared_ptr<core::Session>> sessions_;
  std::vector<std::string> events_;
};

TEST_F(Zoo, ASegfaultIsToldWithSignalAndCall) {
  EXPECT_EQ(failure_of(faulty("segfault")), "unavailable: worker killed by signal 11 (Segmentation fault) in refresh");
  ASSERT_FALSE(events_.empty());
  EXPECT_EQ(events_[0], "crashed: killed by signal 11 (Segmentation fault) in refresh");
}

TEST_F(Zoo, ASegfaultLeavesNoCoreEvenWhereCoresAreAllowed) {
  rlimit before{};
  ::getrlimit(RLIMIT_CORE, &before);
  const rlimit open_limit{before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_CORE, &open_limit);
  auto& session = faulty("segfault");
  ASSERT_TRUE(core_.run(session.info()));
  const std::string limits = read_file("/proc/" + std::to_string(session.status().pid) + "/limits");
  EXPECT_THAT(limits, ::testing::ContainsRegex("Max core file size +0 +0"));
  EXPECT_THAT(failure_of(session), HasSubstr("signal 11"));
  ::setrlimit(RLIMIT_CORE, &before);
  for (const auto& entry : fs::directory_iterator("/"))
    EXPECT_NE(entry.path().filename().string().rfind("core", 0), 0u);
}

TEST_F(Zoo, AnAbortIsTold) {
  EXPECT_EQ(failure_of(faulty("abort")), "unavailable: worker killed by signal 6 (Aborted) in refresh");
}

TEST_F(Zoo, AnExitWithZeroIsACrashToo) {
  EXPECT_EQ(failure_of(faulty("exits")), "unavailable: worker exited with 0 in refresh");
}

TEST_F(Zoo, AHangIsKilledAfterDeadlineAndGrace) {
  auto& session = faulty("hangs");
  ASSERT_TRUE(core_.run(session.info()));
  EXPECT_EQ(failure_of(session, milliseconds(1000)), "unavailable: worker no answer within 1 s: killed in refresh");
}

TEST_F(Zoo, HealthAnswersWhileAnotherCallHangs) {
  auto& session = faulty("hangs");
  std::optional<Result<core::RefreshOutcome>> outcome;
  core_.start(session.refresh({false, {}, {}, milliseconds(10'000)}, keep(std::make_shared<Pages>())), outcome);
  ASSERT_TRUE(core_.run(session.info()));
  EXPECT_TRUE(core_.run(session.health()));
  EXPECT_FALSE(outcome);
  core_.run(session.stop());
  core_.until([&] { return outcome.has_value(); });
}

TEST_F(Zoo, ALeakIsKilledAtTheMemoryBudget) {
  core::Budgets budgets;
  budgets.rss_bytes = 256ll << 20;
  EXPECT_THAT(failure_of(faulty("leaks", budgets)),
              ::testing::MatchesRegex("unavailable: worker RSS [0-9]+ MiB over the budget of 256 MiB"));
  EXPECT_THAT(events_[0], HasSubstr("budget: RSS"));
}

TEST_F(Zoo, ALeakOfThreadsIsKilledAtItsBudget) {
  core::Budgets budgets;
  budgets.threads = 64;
  auto& session = faulty("leaks_threads", budgets);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(refresh(session)) << "20 more each time";
  core_.until([&] { return !events_.empty(); });
  EXPECT_THAT(events_[0], ::testing::MatchesRegex("budget: [89][0-9] threads over the budget of 64"));
  EXPECT_EQ(session.status().budget_hits.at("threads"), 1u);
}

TEST_F(Zoo, APluginThatDoesNotReturnFromCloseIsNamed) {
  auto& session = faulty("blocks_in_close");
  ASSERT_TRUE(refresh(session));
  core_.run(session.stop());
  EXPECT_EQ(events_.back(), "misbehaved: did not return from close within 200 ms of being stopped: killed");
}

TEST_F(Zoo, GarbageOnTheProtocolDescriptorIsToldAndKilled) {
  EXPECT_THAT(failure_of(faulty("garbage")), HasSubstr("unavailable: worker wrote garbage to the protocol"));
  EXPECT_EQ(events_[0], "misbehaved: wrote garbage to the protocol");
}

TEST_F(Zoo, AHundredMegabytesOnStderrCostNothing) {
  auto& session = faulty("shouts");
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto outcome = refresh(session);
  EXPECT_TRUE(outcome) << outcome.error().message;
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 32 * 1024) << "KiB of memory";
  EXPECT_EQ(session.status().restarts, 0u);
}

TEST_F(Zoo, ThePluginBesideABadOneMissesNothing) {
  auto& good = sound();
  auto& bad = faulty("segfault");
  for (int i = 0; i < 4; ++i) {
    std::optional<Result<core::RefreshOutcome>> crashed;
    core_.start(bad.refresh({}, keep(std::make_shared<Pages>())), crashed);
    const auto outcome = refresh(good);
    EXPECT_TRUE(outcome) << outcome.error().message;
    core_.until([&] { return crashed.has_value(); });
    EXPECT_FALSE(*crashed);
  }
  EXPECT_EQ(good.status().restarts, 0u);
}

TEST_F(Zoo, FiveCrashesInTenMinutesParkTheWorkerVisibly) {
  auto& session = faulty("abort");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(failure_of(session), HasSubstr("signal 6"));
  EXPECT_EQ(session.status().state, "parked");
  EXPECT_THAT(failure_of(session),
              AllOf(HasSubstr("parked after 5 crashes"), HasSubstr("signal 6 (Aborted) in refresh")));
  EXPECT_THAT(events_.back(), HasSubstr("parked: 5 crashes in ten minutes"));
}

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator{}));
}

class PatientZoo : public Zoo {
 protected:
  PatientZoo() { crashes_to_park_ = 1'000'000; }
};

TEST_F(PatientZoo, FiftyRestartsLeakNoDescriptor) {
  auto& session = faulty("exits");
  EXPECT_THAT(failure_of(session), HasSubstr("exited with 0"));
  const std::size_t before = open_files();
  for (int i = 0; i < 50; ++i) ASSERT_THAT(failure_of(session), HasSubstr("exited with 0"));
  EXPECT_GE(session.status().restarts, 50u);
  EXPECT_LE(open_files(), before + 3) << "a worker that starts now may hold three";
}

TEST_F(Zoo, AConstructorThatExitsIsToldAsSuch) {
  EXPECT_THAT(refusal("constructor_exits"), HasSubstr("exited with 7 in load"));
}

TEST_F(Zoo, ANewerMinorIsRefusedWithBothNumbersAndTheFix) {
  EXPECT_THAT(refusal("wrong_version"),
              HasSubstr("needs a host of ABI 1.3 (it was built with 1.4), this agent speaks 1.0; upgrade driftd"));
}

TEST_F(Zoo, AMissingEntryIsNamed) {
  EXPECT_THAT(refusal("missing_symbol"), HasSubstr("does not export driftd_provider_v1"));
}

TEST_F(Zoo, ANullSlotIsNamed) {
  EXPECT_THAT(refusal("null_slot"), HasSubstr("slot `read` is NULL inside the declared size"));
}

TEST_F(Zoo, HalfAnExtensionNamesTheMissingHalf) {
  EXPECT_THAT(refusal("half_watch"),
              AllOf(HasSubstr("half of extension driftd.watch/1"), HasSubstr("query answers NULL")));
  EXPECT_THAT(refusal("half_describe"),
              AllOf(HasSubstr("half of extension driftd.watch/1"), HasSubstr("describe does not list it")));
}

TEST_F(Zoo, ABadSchemaNamesKindAndMember) {
  EXPECT_THAT(refusal("other_schema_each_time"), HasSubstr("schema(\"role\") answered another text the second time"));
  EXPECT_THAT(refusal("writes_past_accept"), HasSubstr("wrote behind the `size` of driftd_accept"));
  EXPECT_THAT(refusal("bad_schema"), AllOf(HasSubstr("schema of kind `role`"), HasSubstr("atributes")));
}

TEST_F(Zoo, AScanReportsEveryBadFileAndFindsTheGoodOne) {
  auto options = host_options(core_);
  options.plugin_dirs = {DRIFTD_BINARY_DIR "/tests/faulty_providers", DRIFTD_BINARY_DIR "/tests/providers"};
  const auto factory = host::make_session_factory(options);
  const auto found = core_.run(factory->scan(), std::chrono::seconds(100));
  std::map<std::string, std::string> by_name;
  for (const auto& f : found) by_name[fs::path(f.file).stem()] = f.info ? "ok" : f.info.error().message;
  EXPECT_EQ(by_name["tester"], "ok");
  EXPECT_THAT(by_name["describe_crashes"], HasSubstr("killed by signal 6 (Aborted) in load"));
  EXPECT_THAT(by_name["constructor_exits"], HasSubstr("exited with 7 in load"));
  EXPECT_THAT(by_name["twin"], HasSubstr("provider `sound` is already found in"));
  core::SessionSpec spec;
  spec.provider = "test-thing";
  spec.settings_json = "{}";
  EXPECT_TRUE(factory->open(spec)) << "found by its type";
  spec.provider = "testre";
  EXPECT_THAT(factory->open(spec).error().message, HasSubstr("did you mean `tester`?"));
}

TEST_F(Zoo, AFileOrFolderThatOthersMayWriteIsRefused) {
  TempDir folder;
  core::SessionSpec spec;
  spec.backend = "b";
  spec.provider = folder.file("open.so");
  spec.settings_json = "{}";
  const auto open_error = [&] {
    const auto opened = factory_->open(spec);
    return opened ? std::string("it was opened") : opened.error().message;
  };
  fs::copy_file(DRIFTD_BINARY_DIR "/tests/providers/tester.so", spec.provider);
  ::chmod(spec.provider.c_str(), 0666);
  EXPECT_THAT(open_error(), HasSubstr("open.so is writable by others (mode 0666)"));
  ::chmod(spec.provider.c_str(), 0644);
  EXPECT_TRUE(core_.run(open(spec.provider).info())) << "the temporary folder above is sticky";
  ::chmod(folder.path().c_str(), 0777);
  EXPECT_THAT(open_error(), HasSubstr("is writable by others (mode 0777)"));
  ::chmod(folder.path().c_str(), 0700);
}

/// A faulty provider, and the texts that must report its misbehaviour: in the outcome of a refresh, and in an event
/// that names the function. An empty `event` means that the outcome is enough.
struct Misbehaviour {
  const char *provider, *outcome, *event;
  friend std::ostream& operator<<(std::ostream& out, const Misbehaviour& m) { return out << m.provider; }
};
class NamedInTheZoo : public Zoo, public ::testing::WithParamInterface<Misbehaviour> {};

TEST_P(NamedInTheZoo, TheMisbehaviourIsNamedAndTheNeighbourMissesNothing) {
#ifdef __SANITIZE_THREAD__
  if (std::string_view(GetParam().provider) == "frees_host_memory") {
    GTEST_SKIP() << "LOUD: ThreadSanitizer's free() accepts a pointer into the middle of a block";
  }
#endif
  auto& good = sound();
  auto& bad = faulty(GetParam().provider);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(failure_of(bad, milliseconds(2000)), HasSubstr(GetParam().outcome));
    const auto outcome = refresh(good);
    EXPECT_TRUE(outcome) << outcome.error().message;
  }
  const bool reported =
      *GetParam().event == '\0' || std::any_of(events_.begin(), events_.end(), [](const std::string& event) {
        return event.find(GetParam().event) != std::string::npos;
      });
  EXPECT_TRUE(reported) << ::testing::PrintToString(events_);
  EXPECT_EQ(good.status().restarts, 0u);
}

TEST_F(Zoo, AWorkerThatClosedItsDescriptorsIsMendedAndStillHeard) {
  auto& session = faulty("closes_std");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(refresh(session));
  EXPECT_EQ(std::count_if(events_.begin(), events_.end(),
                          [](const auto& event) { return event.find("closed standard input") != std::string::npos; }),
            1)
      << "it is reported once";
  EXPECT_EQ(session.status().misuses.at("refresh"), 9u)
      << "each of the three calls closed three descriptors, which the host had opened again";
}

TEST_F(Zoo, DescriptorsThatStayOpenAreToldBeforeTheyRunOut) {
  auto& session = faulty("leaks_calls_descriptors");
  std::string last;
  int reported_at = 60, failed_at = 60;
  for (int i = 0; i < 60; ++i) {
    last = failure_of(session);
    if (!events_.empty()) reported_at = std::min(reported_at, i);
    if (last.find("no descriptor is left") != std::string::npos) failed_at = std::min(failed_at, i);
  }
  EXPECT_LT(reported_at, failed_at);
  EXPECT_THAT(events_,
              ::testing::Contains(::testing::ContainsRegex("refresh: holds 5[0-9]+ of 1024 descriptors open")));
  EXPECT_THAT(last, HasSubstr("no descriptor is left"));
}

TEST_F(Zoo, APeerThatHungUpIsAnErrorOfTheWriteAndNoDeath) {
  auto& session = faulty("broken_pipe");
  EXPECT_TRUE(refresh(session)) << failure_of(session);
  EXPECT_THAT(events_, ::testing::IsEmpty());
}

constexpr const char* kFine = "it did not fail";
constexpr const char* kRefused = "invalid: refresh: the host refused what was told";
INSTANTIATE_TEST_SUITE_P(
    RunTime, NamedInTheZoo,
    ::testing::Values(
        Misbehaviour{"stack_overflow", "killed by signal 11 (Segmentation fault) in refresh", "crashed: killed by"},
        Misbehaviour{"longjmp", "killed by signal 6 (Aborted) in refresh", "crashed: killed by signal 6"},
        Misbehaviour{"deadlock", "killed in refresh", "crashed: no answer"},
        Misbehaviour{"frees_host_memory", "unavailable: ", "crashed: killed by signal"},
        Misbehaviour{"forks", "killed by signal 31 (Bad system call) in refresh", "crashed: killed by signal 31"},
        Misbehaviour{"runs_programs", "killed by signal 31 (Bad system call) in refresh",
                     "crashed: killed by signal 31"},
        Misbehaviour{"lock_file", "open: another process holds the lock", ""},
        Misbehaviour{"fork_bomb", "killed by signal 31 (Bad system call) in refresh", "crashed: killed by signal 31"},
        Misbehaviour{"throws", "an exception crossed the ABI: nobody caught this",
                     "refresh: an exception crossed the ABI"},
        Misbehaviour{"changes_mask", kFine, "refresh: changed the signal mask (signal 10)"},
        Misbehaviour{"changes_handlers", kFine, "refresh: changed the handler of signal 12"},
        Misbehaviour{"changes_locale", kFine, "refresh: changed the locale from C to C.UTF-8"},
        Misbehaviour{"changes_folder", kFine, "refresh: changed the working folder from / to /usr"},
        Misbehaviour{"constructor_chdir", kFine, "load: changed the working folder from / to /usr"},
        Misbehaviour{"closes_std", kFine, "refresh: closed standard input"},
        Misbehaviour{"prints_stdout", kFine, "refresh: printed 11 bytes on standard output, which is the host's"},
        Misbehaviour{"writes_past", kFine, "refresh: wrote behind the `size` of its result"},
        Misbehaviour{"huge_text", kFine, "diag: `text` has 16777216 bytes, at most 8192"},
        Misbehaviour{"null_log", kFine, "log: the text is NULL with a length"},
        Misbehaviour{"foreign_thread", kFine, "log: called on another thread than the call's own"},
        Misbehaviour{"emits_after_return", kFine, "emit: stale or forged call handle"},
        Misbehaviour{"asks_for_others", kFine, "secret: a token that was not minted for this instance"},
        Misbehaviour{"undeclared_metric", kFine, "metric: the name is not declared"},
        Misbehaviour{"huge_cursor", kRefused, "mark: the cursor is longer than 64 KiB"},
        Misbehaviour{"huge_body", kFine, "`body` has 5242880 bytes, at most 4194304"},
        Misbehaviour{"nan_body", kFine, "`body`: JSON 1:23"},
        Misbehaviour{"null_text", kFine, "`body` is NULL with a length"},
        Misbehaviour{"invalid_utf8", kFine, "`id` is not UTF-8"},
        Misbehaviour{"undeclared_kind", kRefused, "kind `ghost` is not declared"}),
    [](const auto& info) { return std::string(info.param.provider); });

}  // namespace
}  // namespace driftd::test
