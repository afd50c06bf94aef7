// SPDX-License-Identifier: Apache-2.0
// The extensions of the ABI (discover, upgrade, apply) through a session, in a worker and in-process.
#include <gmock/gmock.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/host/core_thread.hpp"

namespace driftd::test {
namespace {

using core::SessionSpec;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class Extensions : public ::testing::TestWithParam<SessionSpec::Isolation> {
 protected:
  void TearDown() override {
    if (session_) core_.run(session_->stop());
  }
  core::Session& open(const nlohmann::json& settings = nlohmann::json::object()) {
    factory_ = host::make_session_factory(host_options(core_));
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
    SessionSpec spec;
    spec.backend = "b";
    spec.provider = DRIFTD_BINARY_DIR "/tests/providers/tester.so";
    spec.settings_json = settings.is_null() ? "{}" : settings.dump();
    spec.isolation = GetParam();
    spec.budgets.call *= kPatience;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    session_ = factory_->open(spec).value();
    return *session_;
  }
  Result<core::ApplyOutcome> apply(core::Session& session, const std::string& size, const std::string& key,
                                   bool dry_run, const std::string& version = "v1") {
    core::ApplyRequest request;
    request.id = {"thing", "1"};
    request.expected_version = version;
    request.idempotency_key = key;
    request.dry_run = dry_run;
    request.changes = {{"size", core::ChangeClass::config, "1", size, false}};
    return core_.run(session.apply(request));
  }
  std::string body_of_thing_1(core::Session& session) {
    return core_.run(session.read({{"thing", "1"}}, milliseconds(0))).value().found.at(0).body;
  }

  Core core_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::vector<std::string> events_;
};

std::vector<std::string> names(const core::ProviderInfo& info) {
  std::vector<std::string> out;
  for (const auto& extension : info.extensions) out.push_back(core::render(extension));
  return out;
}

TEST_P(Extensions, InfoNamesThem) {
  const auto info = core_.run(open().info());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_THAT(names(**info), ElementsAre("driftd.apply/1", "driftd.discover/1", "driftd.upgrade/1", "driftd.watch/1"));
}

TEST_P(Extensions, ADiscoveryBringsEachBackendWhole) {
  const auto outcome = core_.run(open().discover());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->complete);
  EXPECT_EQ(outcome->next, milliseconds(9000));
  ASSERT_EQ(outcome->backends.size(), 2u);
  const core::Discovered& orders = outcome->backends[0];
  EXPECT_EQ(orders.name + " " + orders.type + " " + orders.version, "orders postgres 16.2");
  EXPECT_EQ(orders.config, R"({"database":"orders"})");
  EXPECT_THAT(orders.endpoints, ElementsAre("orders.db.svc:5432", "10.0.0.7:5432"));
  EXPECT_THAT(orders.capabilities, ElementsAre("tls"));
  EXPECT_THAT(orders.credentials, ElementsAre(Pair("password", "k8s:db/orders#password")));
  EXPECT_THAT(orders.labels, ElementsAre(Pair("team", "shop")));
  EXPECT_THAT(orders.metadata, ElementsAre(Pair("namespace", "db")));
  EXPECT_FALSE(orders.external);
  EXPECT_GT(orders.observed_ns, 1'600'000'000'000'000'000);
  EXPECT_TRUE(outcome->backends[1].external);
  EXPECT_EQ(outcome->backends[1].origin, "tester-file");
  EXPECT_EQ(outcome->backends[1].config, "{}");
}

TEST_P(Extensions, APartialDiscoveryIsNotCompleteAndSaysWhy) {
  const auto outcome = core_.run(open({{"discover", "partial"}}).discover());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->complete);
  ASSERT_EQ(outcome->diagnostics.size(), 1u);
  EXPECT_EQ(outcome->diagnostics[0].right, "b|get");
}

TEST_P(Extensions, ABackendPushedTwiceOrWithoutANameCostsItselfAndIsCounted) {
  for (const char* mode : {"twice", "nameless"}) {
    auto& session = open({{"discover", mode}});
    const auto outcome = core_.run(session.discover());
    ASSERT_TRUE(outcome) << mode << outcome.error().message;
    EXPECT_FALSE(outcome->complete) << "so that no backend counts as removed";
    EXPECT_EQ(outcome->backends.size(), 2u) << "the other backends arrive";
    ASSERT_EQ(outcome->diagnostics.size(), 1u);
    EXPECT_THAT(outcome->diagnostics[0].text, HasSubstr("discover: backend "));
    core_.run(session.stop());
  }
  EXPECT_THAT(events_, ElementsAre(HasSubstr("backend orders was pushed twice"), HasSubstr("must not be empty")));
}

/// Whoever can label an object can write the metadata of a backend. If the metadata breaks a limit, it is dropped,
/// except for the namespace in which the backend is defined. The backend itself arrives; otherwise no discovery would
/// ever be complete.
TEST_P(Extensions, MetadataThatBreaksALimitCostsTheMetadataButWhereTheBackendIsDefined) {
  const auto outcome = core_.run(open({{"discover", "wordy"}}).discover());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->complete);
  ASSERT_EQ(outcome->backends.size(), 3u);
  EXPECT_EQ(outcome->backends[1].name, "wordy");
  EXPECT_THAT(outcome->backends[1].metadata, ElementsAre(Pair("defined_in", "db")));
  ASSERT_EQ(outcome->diagnostics.size(), 1u);
  EXPECT_THAT(outcome->diagnostics[0].text, HasSubstr("discover: backend wordy: `metadata` has 9000 bytes"));
}

/// Returns how many backends of a namespace arrived.
std::size_t count_of(const core::DiscoverOutcome& outcome, const std::string& space) {
  return static_cast<std::size_t>(
      std::ranges::count_if(outcome.backends, [&](const auto& each) { return each.name.starts_with(space + "-"); }));
}

/// Whoever can write in one namespace can neither use up the share of the others, even if its name sorts first, nor
/// make their discovery fail.
TEST_P(Extensions, ANamespaceThatIsTooLargeCostsItself) {
  const auto outcome = core_.run(open({{"discover", "crowded"}}).discover());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->complete);
  EXPECT_EQ(count_of(*outcome, "prod"), 3u);
  EXPECT_EQ(count_of(*outcome, "a-tenant"), 250u);
  ASSERT_EQ(outcome->diagnostics.size(), 1u) << "one diagnostic for the namespace, not one for each backend";
  EXPECT_EQ(outcome->diagnostics[0].code, Code::budget);
  EXPECT_EQ(outcome->diagnostics[0].path, "a-tenant")
      << "so that the missing backends of this namespace do not count as removed";
  EXPECT_EQ(outcome->diagnostics[0].kind, "registration");
}

TEST_P(Extensions, WhereAllAreTooLargeTheLargestNamespaceGivesWay) {
  const auto outcome = core_.run(open({{"discover", "heavy"}}).discover());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->complete);
  EXPECT_EQ(count_of(*outcome, "a-tenant"), 0u);
  for (const char* each : {"b", "c", "d", "e", "f", "g", "h"}) EXPECT_GE(count_of(*outcome, each), 100u) << each;
  EXPECT_EQ(count_of(*outcome, "prod"), 3u);
  ASSERT_EQ(outcome->diagnostics.size(), 2u) << "one for its own limit, one because all of it was dropped";
  for (const auto& each : outcome->diagnostics) EXPECT_EQ(each.path, "a-tenant");
}

TEST_P(Extensions, ABackendThatCannotBeTakenCostsTheNamespaceThatItIsIn) {
  const auto outcome = core_.run(open({{"discover", "elsewhere"}}).discover());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->complete) << "for all other namespaces";
  ASSERT_EQ(outcome->diagnostics.size(), 1u);
  EXPECT_EQ(outcome->diagnostics[0].path, "tenant");
}

TEST_P(Extensions, AFailedDiscoveryIsItsError) {
  const auto outcome = core_.run(open({{"discover", "fails"}}).discover());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::denied);
  EXPECT_THAT(outcome.error().message, HasSubstr("may not list services"));
}

TEST_P(Extensions, AnUpgradeGivesTheBodyInTodaysForm) {
  auto& session = open();
  const auto body = core_.run(session.upgrade("thing", 1, R"({"length":7,"password":{"$hmac":"a:1:b"}})"));
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_EQ(*body, R"({"password":{"$hmac":"a:1:b"},"size":7})");
}

TEST_P(Extensions, AnUpgradeTellsUnknownRevisionsFromBadBodiesAndBadAnswers) {
  auto& session = open();
  EXPECT_EQ(core_.run(session.upgrade("thing", 9, "{}")).error().code, Code::unsupported);
  EXPECT_EQ(core_.run(session.upgrade("other", 1, "{}")).error().code, Code::unsupported);
  EXPECT_EQ(core_.run(session.upgrade("thing", 1, "{}")).error().code, Code::invalid);
  EXPECT_EQ(core_.run(session.upgrade("thing", 1, R"({"no_object":1})")).error().code, Code::corrupt);
  EXPECT_THAT(events_, ElementsAre(HasSubstr("no JSON object")));
}

TEST_P(Extensions, ADryRunChangesNothingAndTheRealOneDoesOnceForAKey) {
  auto& session = open();
  const auto dry = apply(session, "5", "k", true);
  ASSERT_TRUE(dry) << dry.error().message;
  EXPECT_EQ(dry->result, core::ApplyOutcome::Result::success);
  EXPECT_FALSE(dry->changed);
  EXPECT_THAT(body_of_thing_1(session), HasSubstr(R"("size":1)"));
  const auto wet = apply(session, "5", "k", false);
  ASSERT_TRUE(wet) << wet.error().message;
  EXPECT_TRUE(wet->changed);
  EXPECT_EQ(wet->version, "v2");
  EXPECT_THAT(wet->commands, ElementsAre("SET size 5", "COMMIT")) << "in the order in which they ran";
  EXPECT_THAT(wet->undo, ElementsAre("SET size 1"));
  EXPECT_THAT(wet->details, ElementsAre(Pair("statement", "SET size 5")));
  EXPECT_THAT(body_of_thing_1(session), HasSubstr(R"("size":5)"));
  const auto again = apply(session, "5", "k", false);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->changed);
}

TEST_P(Extensions, ApplyToldOfAnotherVersionIsAConflictAndOfAGoneThingNotFound) {
  auto& session = open();
  EXPECT_EQ(apply(session, "5", "k", true, "v7").error().code, Code::conflict);
  core::ApplyRequest gone;
  gone.id = {"thing", "77"};
  gone.idempotency_key = "k";
  gone.changes = {{"size", core::ChangeClass::config, "1", "2", false}};
  EXPECT_EQ(core_.run(session.apply(gone)).error().code, Code::not_found);
}

TEST_P(Extensions, ApplyAnswersEachOutcome) {
  auto& session = open();
  const auto busy = apply(session, "98", "a", true);
  ASSERT_TRUE(busy) << busy.error().message;
  EXPECT_EQ(busy->result, core::ApplyOutcome::Result::requeue);
  const auto rolling = apply(session, "99", "b", true);
  ASSERT_TRUE(rolling) << rolling.error().message;
  EXPECT_EQ(rolling->result, core::ApplyOutcome::Result::requeue_after);
  EXPECT_EQ(rolling->requeue_after, milliseconds(1500));
  EXPECT_EQ(rolling->text, "rolling out");
  core::ApplyRequest fixed;
  fixed.id = {"thing", "1"};
  fixed.expected_version = "v1";
  fixed.idempotency_key = "c";
  fixed.changes = {{"colour", core::ChangeClass::config, "1", "2", false}};
  const auto failed = core_.run(session.apply(fixed));
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->result, core::ApplyOutcome::Result::failed);
  EXPECT_EQ(failed->text, "colour is fixed");
}

TEST_P(Extensions, ADryRunThatChangedTheSystemIsABrokenRule) {
  auto& session = open({{"wet", true}});
  EXPECT_EQ(apply(session, "5", "k", true).error().code, Code::internal);
  EXPECT_THAT(events_, ElementsAre(HasSubstr("a dry run says that it changed the system")));
}

TEST_P(Extensions, ApplyNeverGetsACredential) {
  auto& session = open();
  core::ApplyRequest request;
  request.id = {"thing", "1"};
  request.idempotency_key = "k";
  request.changes = {{"password", core::ChangeClass::credential, "\"[REDACTED]\"", "\"[REDACTED]\"", true}};
  const auto refused = core_.run(session.apply(request));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("password is a credential"));
}

/// A digest inside a value, at any depth and of any form, would be written into the system as if it were the value.
TEST_P(Extensions, ApplyNeverGetsAValueThatHoldsADigest) {
  auto& session = open();
  for (const char* value : {R"({"$hmac":"a:1:b"})", R"([1,{"deep":[{"$hmac":"a:1:b:withheld"}]}])", R"({"$hmac":7})",
                            R"("[REDACTED]")", R"({"env":[{"value":"[REDACTED]"}]})"}) {
    core::ApplyRequest request;
    request.id = {"thing", "1"};
    request.idempotency_key = "k";
    request.changes = {{"size", core::ChangeClass::config, "1", value, false}};
    const auto refused = core_.run(session.apply(request));
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code, Code::invalid);
    EXPECT_THAT(refused.error().message, HasSubstr("size holds a secret or a withheld value"));
    std::swap(request.changes[0].old_value, request.changes[0].new_value);
    EXPECT_EQ(core_.run(session.apply(request)).error().code, Code::invalid) << value;
  }
}

TEST_P(Extensions, ApplyNeverCreatesOrDeletes) {
  auto& session = open();
  core::ApplyRequest request;
  request.id = {"thing", "1"};
  request.idempotency_key = "k";
  request.changes = {{std::string(core::kIdentityPath), core::ChangeClass::config, "\"1\"", std::nullopt, false}};
  const auto refused = core_.run(session.apply(request));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("never created or deleted"));
}

TEST_P(Extensions, ApplyHasBounds) {
  auto& session = open();
  core::ApplyRequest request;
  request.id = {"thing", "1"};
  request.idempotency_key = "k";
  const auto refusal = [&] {
    const auto out = core_.run(session.apply(request));
    return out ? std::string("accepted") : out.error().message;
  };
  EXPECT_THAT(refusal(), HasSubstr("expected 1 to 256 changes, found 0"));
  for (int i = 0; i < 257; ++i) {
    request.changes.push_back({"a" + std::to_string(i), core::ChangeClass::config, "1", "2", false});
  }
  EXPECT_THAT(refusal(), HasSubstr("found 257"));
  request.changes = {{"size", core::ChangeClass::config, "1", "\"" + std::string(1u << 20, 'x') + "\"", false}};
  EXPECT_THAT(refusal(), HasSubstr("the maximum is 1048576"));
  request.changes = {{"size", core::ChangeClass::config, "1", "2", false},
                     {"size", core::ChangeClass::config, "1", "3", false}};
  EXPECT_THAT(refusal(), HasSubstr("size comes twice"));
  request.changes = {{"size", core::ChangeClass::config, "1", "no JSON", false}};
  EXPECT_THAT(refusal(), HasSubstr("not JSON"));
  request.changes = {{"size", core::ChangeClass::config, "1", "2", false}};
  request.idempotency_key = std::string(129, 'k');
  EXPECT_THAT(refusal(), HasSubstr("found 129"));
}

TEST_P(Extensions, AFailureThatLeftSomethingNamesIt) {
  const auto failed = apply(open({{"apply", "half"}}), "5", "k", false);
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->result, core::ApplyOutcome::Result::failed);
  EXPECT_TRUE(failed->changed);
  EXPECT_THAT(failed->left, ElementsAre("size"));
}

TEST_P(Extensions, AFailureThatLeftSomethingAndDoesNotSayWhatIsABrokenRule) {
  EXPECT_EQ(apply(open({{"apply", "silent"}}), "5", "k", false).error().code, Code::internal);
  EXPECT_THAT(events_, ElementsAre(HasSubstr("`left` is for FAILED")));
}

TEST_P(Extensions, ACommandThatIsTooLongToBeShownWholeIsABrokenRule) {
  EXPECT_EQ(apply(open({{"apply", "long"}}), "5", "k", false).error().code, Code::internal);
  EXPECT_THAT(events_, ElementsAre(HasSubstr("longer than 64 KiB")));
}

/// Nobody knows whether the system was changed: the call is not made again here, and the caller reads the resource.
TEST(ExtensionsOfAWorker, ThatDiesInAnApplyAreUnavailable) {
  Core core;
  const auto factory = host::make_session_factory(host_options(core));
  SessionSpec spec;
  spec.backend = "b";
  spec.provider = DRIFTD_BINARY_DIR "/tests/providers/tester.so";
  spec.settings_json = R"({"apply":"dies"})";
  spec.isolation = SessionSpec::Isolation::process;
  spec.budgets.call *= kPatience;
  if (kSanitized) spec.budgets.rss_bytes = 0;
  const auto session = factory->open(spec).value();
  core::ApplyRequest request;
  request.id = {"thing", "1"};
  request.expected_version = "v1";
  request.idempotency_key = "k";
  request.dry_run = false;
  request.changes = {{"size", core::ChangeClass::config, "1", "5", false}};
  const auto dead = core.run(session->apply(request));
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, Code::unavailable);
  core.run(session->stop());
}

INSTANTIATE_TEST_SUITE_P(Isolation, Extensions,
                         ::testing::Values(SessionSpec::Isolation::process, SessionSpec::Isolation::in_process),
                         [](const auto& param) {
                           return param.param == SessionSpec::Isolation::process ? "Process" : "InProcess";
                         });

}  // namespace
}  // namespace driftd::test
