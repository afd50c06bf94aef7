// SPDX-License-Identifier: Apache-2.0
// Providers that were built for older and newer versions of the ABI run in the current host.
#include <gmock/gmock.h>

#include <functional>

#include "contract/host/core_thread.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using core::SessionSpec;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OtherTimes : public ::testing::TestWithParam<SessionSpec::Isolation> {
 protected:
  void TearDown() override {
    if (session_) core_.run(session_->stop());
  }
  core::Session& open(const std::string& provider, std::string settings = "{}") {
    factory_ = host::make_session_factory(host_options(core_));
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
    SessionSpec spec;
    spec.backend = "b";
    spec.provider = DRIFTD_BINARY_DIR "/tests/releases/" + provider + ".so";
    spec.settings_json = std::move(settings);
    spec.secrets = {{"token-1", "pssst-secret"}};
    spec.isolation = GetParam();
    spec.budgets.call *= kPatience;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    session_ = factory_->open(spec).value();
    return *session_;
  }
  Result<core::RefreshOutcome> refresh(core::Session& session) { return core_.run(session.refresh({}, keep(pages_))); }
  Core core_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::vector<std::string> events_;
};

/// The kept releases of the ABI: rc1, the first release candidate, and v1, the final 1.0.
class Ages : public OtherTimes {
 protected:
  void for_each_release(const std::function<void(const std::string& release)>& visit) {
    for (const char* release : {"rc1", "v1"}) {
      SCOPED_TRACE(release);
      visit(release);
      core_.run(session_->stop());
      session_.reset();
      pages_ = std::make_shared<Pages>();
    }
  }
  void check_provider_in_c(const std::string& release);
  void check_provider_on_the_sdk(const std::string& release);
};

TEST_P(Ages, AProviderInCLoadsAndDoesAllItDid) {
  for_each_release([this](const std::string& release) { check_provider_in_c(release); });
}

TEST_P(Ages, AProviderOnTheSdkLoadsAndDoesAllItDid) {
  for_each_release([this](const std::string& release) { check_provider_on_the_sdk(release); });
}

void Ages::check_provider_in_c(const std::string& release) {
  auto& session = open(release + "_things");
  const auto info = core_.run(session.info());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_THAT((*info)->extensions, ElementsAre(core::Extension{"driftd.watch", 1}));
  const auto outcome = refresh(session);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->next, milliseconds(4000));
  ASSERT_EQ(pages_->records(), 2u);
  const auto& record = pages_->all[0].records[0];
  EXPECT_EQ(record.unread.at(0).path, "owner");
  EXPECT_EQ(record.metadata.at("note"), "n");
  EXPECT_THAT(record.body, HasSubstr("$hmac"));
  EXPECT_EQ(pages_->marks().back().count, 2u);
  const auto read = core_.run(session.read({{"thing", "b"}, {"thing", "z"}}, milliseconds(0)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->found.size(), 1u);
  EXPECT_THAT(read->not_found, ElementsAre(core::ResourceId{"thing", "z"}));
  EXPECT_EQ(core_.run(session.health()).value().server_version, "9.9");
  EXPECT_TRUE(core_.run(session.watch("", keep(pages_))));
  EXPECT_EQ(session.status().gauges.at("seen"), 2.0);
  EXPECT_THAT(events_, IsEmpty());
}

void Ages::check_provider_on_the_sdk(const std::string& release) {
  auto& session = open(release + "_tester", R"({"count":3,"secret":"token-1"})");
  const auto outcome = refresh(session);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(pages_->records(), 3u);
  const auto read = core_.run(session.read({{"thing", "1"}, {"thing", "77"}}, milliseconds(0)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->found.size(), 1u);
  EXPECT_THAT(read->not_found, ElementsAre(core::ResourceId{"thing", "77"}));
  EXPECT_EQ(core_.run(session.health()).value().role, "primary");
  EXPECT_EQ(core_.run(session.discover()).error().code, Code::unsupported)
      << "the extension is newer than the provider";
  EXPECT_EQ(core_.run(session.upgrade("thing", 1, "{}")).error().code, Code::unsupported);
  EXPECT_THAT(events_, IsEmpty());
}

TEST_P(OtherTimes, AProviderOfANewerMinorWithALargerTableAndLongerStructsLoads) {
  auto& session = open("newer");
  const auto info = core_.run(session.info());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_THAT((*info)->extensions, IsEmpty());
  const auto outcome = refresh(session);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(pages_->records(), 2u);
  EXPECT_EQ(pages_->all[0].records[1].id.id, "b");
  EXPECT_EQ(pages_->all[0].records[1].unread.at(1).path, "y");
  EXPECT_EQ(pages_->marks().back().count, 2u);
  const auto read = core_.run(session.read({{"thing", "z"}}, milliseconds(0)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->not_found, ElementsAre(core::ResourceId{"thing", "z"}));
  EXPECT_EQ(core_.run(session.health()).value().role, "primary");
  EXPECT_THAT(events_, IsEmpty());
}

TEST_P(OtherTimes, AProviderThatNeedsANewerMinorIsRefusedWithBothNumbers) {
  const auto info = core_.run(open("needs_newer").info());
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, Code::unsupported);
  EXPECT_THAT(info.error().message, HasSubstr("the plugin needs a host of ABI 1.2 (it was built with 1.3), this agent "
                                              "speaks 1.0; upgrade driftd, or install a build of the plugin for 1.0"));
}

TEST_P(OtherTimes, AProviderThatRefusesForAReasonOfItsOwnIsQuoted) {
  const auto info = core_.run(open("refuses").info());
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, Code::unsupported);
  EXPECT_THAT(info.error().message, HasSubstr("refuses.so: the plugin refuses: runs in a worker only"));
}

INSTANTIATE_TEST_SUITE_P(Isolation, OtherTimes,
                         ::testing::Values(SessionSpec::Isolation::process, SessionSpec::Isolation::in_process),
                         [](const auto& param) {
                           return param.param == SessionSpec::Isolation::process ? "Process" : "InProcess";
                         });
INSTANTIATE_TEST_SUITE_P(Isolation, Ages,
                         ::testing::Values(SessionSpec::Isolation::process, SessionSpec::Isolation::in_process),
                         [](const auto& param) {
                           return param.param == SessionSpec::Isolation::process ? "Process" : "InProcess";
                         });

}  // namespace
}  // namespace driftd::test
