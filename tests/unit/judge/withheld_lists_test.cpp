// SPDX-License-Identifier: Apache-2.0
// Whether a value is withheld depends on the value, so its writer chooses it. No form may hide a change or create one.
#include "core/disclosure.hpp"
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Verb = Decision::Verb;

/// Tables of a publication keyed by name, tags without order, and a free-form object. A filter that a test withholds
/// represents a text that looks like a secret.
constexpr const char* kSchema =
    R"({"schema":"driftd-schema/1","kind":"publication","revision":1,"class":"config","attributes":{
  "tables":{"collection":"map","keys":["table"]},"tags":{"collection":"set"}}})";

struct WithheldLists : testing::Test, ResourceFixture {
  WithheldLists() {
    context.schema = schema_of(kSchema);
    context.keys = std::make_shared<const RedactionKeys>(keys_);
    context.established = true;
    next.id = {"publication", "app"};
    row.id = next.id;
  }
  /// Returns the body as the agent gets it if the values at `paths` are withheld.
  std::string sealed(const std::string& body, const std::vector<std::string>& paths) const {
    std::vector<FreeForm> free;
    for (const auto& path : paths) free.push_back({"publication", "", path});
    const Disclosure disclosure(free, {});
    const auto out =
        seal(redact(body, {"publication", "app"}, *context.schema, {}, keys_.worker, &disclosure).value(), keys_.store)
            .value();
    EXPECT_EQ(out.find("$hmac") == std::string::npos, paths.empty()) << out;
    return out;
  }
  std::string clear(const std::string& filter) const { return sealed(of(filter), {}); }
  std::string withheld(const std::string& filter) const { return sealed(of(filter), {"**.filter"}); }
  void begins_with(const std::string& body) {
    sees(body);
    ASSERT_TRUE(decides(Verb::approve));
    ASSERT_THAT(row.open, IsEmpty());
  }

 private:
  static std::string of(const std::string& filter) {
    return R"({"tables":[{"table":"b","filter":")" + filter + "\"}]}";
  }
  RedactionKeys keys_{{"aaaa1111", {1}}, {"bbbb2222", {2}}};
};

TEST_F(WithheldLists, AValueInAListByKeysThatBecomesWithheldIsADrift) {
  begins_with(clear("carpe diem"));
  EXPECT_THAT(statuses(sees(withheld("sapere aude"))), ElementsAre("pending"));
  EXPECT_THAT(paths(drift()), ElementsAre("tables[table=b].filter"));
  EXPECT_THAT(statuses(sees(clear("carpe diem"))), ElementsAre("reverted"));
}

TEST_F(WithheldLists, AValueInAListByKeysThatIsShownAgainIsADrift) {
  begins_with(withheld("carpe diem"));
  EXPECT_THAT(statuses(sees(clear("sapere aude"))), ElementsAre("pending"));
  EXPECT_THAT(statuses(sees(withheld("carpe diem"))), ElementsAre("reverted"));
}

TEST_F(WithheldLists, TheSameValueInAListByKeysInAnotherFormIsNone) {
  begins_with(clear("carpe diem"));
  EXPECT_THAT(statuses(sees(withheld("carpe diem"))), IsEmpty());
  EXPECT_THAT(*row.baseline, Not(HasSubstr("carpe")));
  EXPECT_THAT(statuses(sees(clear("carpe diem"))), IsEmpty());
}

TEST_F(WithheldLists, AnElementThatComesInFrontChangesNoOtherOne) {
  begins_with(sealed(R"({"tables":[{"table":"b","filter":"carpe diem"}]})", {"**.filter"}));
  sees(sealed(R"({"tables":[{"table":"a"},{"table":"b","filter":"carpe diem"}]})", {"**.filter"}));
  ASSERT_EQ(row.open.size(), 1U);
  EXPECT_THAT(paths(drift()), ElementsAre("tables[table=a]"));
}

TEST_F(WithheldLists, ElementsWithoutOrderMayChangePlaces) {
  begins_with(sealed(R"({"tags":["carpe diem","sapere aude"]})", {"tags.*", "tags[*]"}));
  EXPECT_THAT(statuses(sees(sealed(R"({"tags":["sapere aude","carpe diem"]})", {"tags.*", "tags[*]"}))), IsEmpty());
  EXPECT_THAT(statuses(sees(sealed(R"({"tags":["sapere aude","nosce te"]})", {"tags.*", "tags[*]"}))),
              ElementsAre("pending"));
}

/// The names themselves are withheld and two are equal, so no key tells the elements apart.
TEST_F(WithheldLists, AListThatLosesItsKeysHidesNoChange) {
  const std::vector<std::string> both{"**.filter", "**.table"};
  begins_with(
      sealed(R"({"tables":[{"table":"amor fati","filter":"carpe diem"},{"table":"alea iacta","filter":"carpe diem"}]})",
             both));
  EXPECT_THAT(
      statuses(sees(sealed(
          R"({"tables":[{"table":"amor fati","filter":"sapere aude"},{"table":"amor fati","filter":"sapere aude"}]})",
          both))),
      ElementsAre("pending"));
}

TEST_F(WithheldLists, AnObjectWithADigestInsideThatBecomesATextIsADrift) {
  begins_with(sealed(R"({"spec":{"x":"carpe diem","y":"1"}})", {"spec.x"}));
  EXPECT_THAT(statuses(sees(sealed(R"({"spec":"sapere aude"})", {"spec"}))), ElementsAre("pending"));
  EXPECT_THAT(statuses(sees(sealed(R"({"spec":{"x":"carpe diem","y":"1"}})", {"spec.x"}))), ElementsAre("reverted"));
}

TEST_F(WithheldLists, ATextThatBecomesAnObjectWithADigestInsideIsADrift) {
  begins_with(sealed(R"({"spec":"carpe diem"})", {"spec"}));
  EXPECT_THAT(statuses(sees(sealed(R"({"spec":{"x":"sapere aude"}})", {"spec.x"}))), ElementsAre("pending"));
}

TEST_F(WithheldLists, AnExpectationByPlaceOrByKeyIsComparedWithTheDigest) {
  rules.expect.push_back(expectation("tables[0].filter", R"("carpe diem")"));
  rules.expect.push_back(expectation("tables[table=b].filter", R"("carpe diem")"));
  begins_with(withheld("carpe diem"));
  EXPECT_THAT(row.open, IsEmpty());
  sees(withheld("sapere aude"));
  bool expected = false;
  for (const auto& open : row.open) expected = expected || open.against == Against::expectation;
  EXPECT_TRUE(expected);
}

}  // namespace
}  // namespace driftd::core
