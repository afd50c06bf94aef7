// SPDX-License-Identifier: Apache-2.0
// ADR 0013: what is withheld of a resource changes what is shown, never what is judged.
#include "core/disclosure.hpp"
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Verb = Decision::Verb;

struct Withheld : testing::Test, ResourceFixture {
  Withheld() {
    context.keys = std::make_shared<const RedactionKeys>(keys_);
    next.id = {"role", "app"};
    row.id = next.id;
  }
  /// Returns the body of an agent that withholds the value, or that of an earlier version, which did not.
  std::string withheld(const std::string& motto) const { return sealed(motto, {}); }
  std::string secret(const std::string& motto) const { return sealed(motto, {"motto"}); }
  static std::string shown(const std::string& motto) { return R"({"motto":")" + motto + "\"}"; }

 private:
  std::string sealed(const std::string& motto, const std::vector<std::string>& sensitive) const {
    const Disclosure disclosure({{"role", "", "motto"}}, {});
    const auto schema = schema_of(kRoleSchema);
    return seal(redact(shown(motto), {"role", "app"}, *schema, sensitive, keys_.worker, &disclosure).value(),
                keys_.store)
        .value();
  }
  RedactionKeys keys_{{"aaaa1111", {1}}, {"bbbb2222", {2}}};
};

TEST_F(Withheld, AnUpgradeThatWithholdsMoreIsNoDriftAndTheStoreForgetsTheValue) {
  context.established = true;
  sees(shown("carpe diem"));
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_THAT(statuses(sees(withheld("carpe diem"))), IsEmpty());
  EXPECT_THAT(*row.baseline, Not(HasSubstr("carpe")));
  EXPECT_THAT(statuses(sees(withheld("sapere aude"))), ElementsAre("pending")) << "and a change is one";
  EXPECT_EQ(drift().cls, ChangeClass::config) << "nobody said that it is a credential";
  EXPECT_THAT(statuses(sees(withheld("carpe diem"))), ElementsAre("reverted"));
}

TEST_F(Withheld, AChangeAtTheMomentOfTheUpgradeIsSeen) {
  context.established = true;
  sees(shown("carpe diem"));
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_THAT(statuses(sees(withheld("sapere aude"))), ElementsAre("pending"));
  EXPECT_THAT(drift().changes.at(0).old_value.value_or(""), Not(HasSubstr("carpe")));
  EXPECT_THAT(*row.baseline, Not(HasSubstr("carpe")));
}

TEST_F(Withheld, ADriftThatStandsIsSaidNoMoreAndShowsItsValuesNoMore) {
  context.established = true;
  sees(shown("carpe diem"));
  ASSERT_TRUE(decides(Verb::approve));
  sees(shown("sapere aude"));
  ASSERT_TRUE(decides(Verb::reject));
  EXPECT_THAT(statuses(sees(withheld("sapere aude"))), IsEmpty());
  EXPECT_EQ(drift().status, DriftStatus::rejected);
  EXPECT_THAT(drift().changes.at(0).new_value.value_or(""), Not(HasSubstr("sapere")));
  EXPECT_TRUE(drift().changes.at(0).redacted);
}

TEST_F(Withheld, TheCredentialsClassIsOfWhatIsCalledASecret) {
  context.established = true;
  sees(secret("one"));
  ASSERT_TRUE(decides(Verb::approve));
  sees(secret("two"));
  EXPECT_EQ(log.back().drift.cls, ChangeClass::credential);
}

TEST_F(Withheld, AnExpectationInClearIsComparedWithTheDigest) {
  context.established = true;
  rules.expect.push_back(expectation("motto", R"("carpe diem")"));
  sees(withheld("carpe diem"));
  ASSERT_TRUE(decides(Verb::approve));
  EXPECT_THAT(row.open, IsEmpty());
  const Judgement other = sees(withheld("sapere aude"));
  EXPECT_THAT(other.unknown, IsEmpty());
  bool expected = false;
  for (const auto& open : row.open) expected = expected || open.against == Against::expectation;
  EXPECT_TRUE(expected);
}

}  // namespace
}  // namespace driftd::core
