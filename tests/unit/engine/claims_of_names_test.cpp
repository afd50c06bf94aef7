// SPDX-License-Identifier: Apache-2.0
// Whose a discovered backend is: that of the source and the namespace in which it was found first.
#include "claims_fixture.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A discovered backend belongs to its discoverer and the namespace in which it was found.
class ClaimsOfNames : public ClaimsOfSources {
 protected:
  static core::Discovered found(const std::string& name_space) {
    core::Discovered out;
    out.name = "orders";
    out.type = "kafka";
    out.endpoints = {"orders." + name_space + ":9092"};
    out.metadata = {{"defined_in", name_space}};
    return out;
  }
  std::string endpoint() {
    const auto views = line_->on_core([&] { return line_->engine().view(); });
    for (const auto& view : views) {
      if (view.name == "orders") return view.endpoint;
    }
    return "none";
  }
};

TEST_F(ClaimsOfNames, ANameIsNotTakenOverFromAnotherNamespace) {
  source().discovered.backends = {found("prod")};
  own("one", 9092, "orders");
  line_->start(false);
  look();
  source().discovered.backends = {found("a-tenant"), found("prod")};
  tenant("evil", 6666, "orders");
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  ASSERT_TRUE(asked());
  EXPECT_EQ(render(claims()[0].resource), "claim/orders");
  EXPECT_THAT(event_types("orders"), Each(std::string("config.updated")));
  decide(Decision::Verb::approve);  // accepted, but not the registrar while the first one is
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  EXPECT_THAT(event_types("orders"), Each(std::string("config.updated")));
}

TEST_F(ClaimsOfNames, ATenantsObjectsDoNotKeepANameThatItsOwnerGaveUp) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  source().discovered.backends = {found("a-tenant")};
  EXPECT_TRUE(eventually([&] {  // discoveries within one interval count once
    look();
    return endpoint() == "orders.a-tenant:9092";
  })) << endpoint();
  EXPECT_THAT(event_types("orders"), Contains("deleted")) << "another backend, which was created";
}

TEST_F(ClaimsOfNames, WhatCannotBeReadElsewhereKeepsNoNameOfAnothers) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  source().discovered.backends.clear();
  source().discovered.diagnostics = {
      {Code::invalid, "registration", "orders", "tenant", "it has no type", "", 0, "orders"}};
  EXPECT_TRUE(eventually([&] {
    look();
    return endpoint() == "none";
  }));
}

TEST_F(ClaimsOfNames, WhatCannotBeReadInItsOwnPlaceStands) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  source().discovered.backends.clear();
  source().discovered.diagnostics = {
      {Code::invalid, "registration", "orders", "prod", "it has no type", "", 0, "orders"}};
  for (int i = 0; i < 5; ++i) look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
}

/// A row of an older store lacks the namespace of its backend.
TEST_F(ClaimsOfNames, OfAStoreThatDidNotNoteThePlaceTheFirstOfTheAlphabetGetsNothing) {
  core::Discovered old = found("prod");
  old.metadata.clear();
  source().discovered.backends = {old};
  line_->start(false);
  look();
  restart();
  source().discovered.backends = {found("a-tenant"), found("prod")};
  own("one", 9092, "orders");
  tenant("evil", 6666, "orders");
  for (int i = 0; i < 5; ++i) look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  EXPECT_THAT(event_types("orders"), Not(Contains("deleted")));
  source().discovered.backends = {found("prod")};  // found in exactly one namespace
  look();
  source().discovered.backends = {found("a-tenant"), found("prod")};
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
}

TEST_F(ClaimsOfNames, AnApprovalEndsWithTheBackendThatItWasGivenFor) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  tenant("one", 1, "orders");
  look();
  ASSERT_TRUE(asked());
  decide(Decision::Verb::approve);
  look();
  source().discovered.backends.clear();
  ASSERT_TRUE(eventually([&] {
    look();
    return endpoint() == "none";
  }));
  source().discovered.backends = {found("zed")};
  look();
  EXPECT_TRUE(asked());
  EXPECT_EQ(endpoint(), "orders.zed:9092");
}

TEST_F(ClaimsOfNames, AClaimOfASourceThatSpeaksOfNoRegistrationIsOverWithItsDiscovery) {
  source().kinds = {"object"};
  source().discovered.backends = {found("prod"), found("a-tenant")};
  line_->start(false);
  look();
  ASSERT_TRUE(asked());
  source().discovered.backends = {found("prod")};
  look();
  EXPECT_TRUE(asked(0));
}

TEST_F(ClaimsOfNames, EndpointAndPlaceAreKnownAfterARestartBeforeTheNextDiscovery) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  look();
  restart();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
  source().discovered.backends = {found("a-tenant"), found("prod")};
  look();
  EXPECT_EQ(endpoint(), "orders.prod:9092");
}

TEST_F(ClaimsOfNames, NothingIsDecidedOfABackendThatEnds) {
  source().discovered.backends = {found("prod")};
  line_->start(false);
  tenant("one", 1, "orders");
  look();
  ASSERT_TRUE(asked());
  const std::string claim = claims().at(0).id;
  line_->wait(line_->on_core([&] { return line_->engine().find("orders")->stop(); }));
  const auto refused = line_->decide(claim, decision(Decision::Verb::approve));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("backend orders is ending"));
  source().discovered.backends.clear();
  EXPECT_TRUE(eventually([&] {
    look();
    return endpoint() == "none";
  }));
  EXPECT_THAT(claims(), IsEmpty()) << "it is retired with the backend";
}

}  // namespace
}  // namespace driftd::test
