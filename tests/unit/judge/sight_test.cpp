// SPDX-License-Identifier: Apache-2.0
// Values that are the same are left out at sight, but not where that would hide what is unknown.
#include "core/judge/diff.hpp"
#include "unit/judge/resource_fixture.hpp"

namespace driftd::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Difference compared(const std::string& schema, const std::string& before, const std::string& after,
                    DiffOptions options = {}) {
  return diff(*parse(before), *parse(after), *schema_of(R"({"schema":"driftd-schema/1","kind":"t",)" + schema + "}"),
              options);
}

std::vector<std::string> unknown_paths(const Difference& difference) {
  std::vector<std::string> out;
  for (const auto& one : difference.unknown) out.push_back(one.path);
  return out;
}

std::vector<std::string> changed_paths(const Difference& difference) {
  std::vector<std::string> out;
  for (const auto& one : difference.changes) out.push_back(one.path);
  return out;
}

TEST(SameAtSight, AMaskedValueThatStaysIsUnknownAsEver) {
  const auto found =
      compared(R"("attributes":{"a":{"masked":["***"]}})", R"({"a":"***","b":1})", R"({"a":"***","b":1})");
  EXPECT_THAT(unknown_paths(found), ElementsAre("a"));
}

TEST(SameAtSight, AHiddenValueInsideAnUnchangedObjectIsUnknown) {
  const auto found = compared(R"("dialect":2,"attributes":{"**.key":{"hidden":["x*"]}})", R"({"o":{"key":"xx"}})",
                              R"({"o":{"key":"xx"}})");
  EXPECT_THAT(unknown_paths(found), ElementsAre("o.key"));
}

TEST(SameAtSight, AnUnreadPartOfAnUnchangedObjectIsUnknown) {
  DiffOptions options;
  options.unread = {{"o.key", Code::denied, "denied"}};
  const auto found = compared(R"("attributes":{})", R"({"o":{"a":1,"key":1}})", R"({"o":{"a":1,"key":1}})", options);
  EXPECT_THAT(unknown_paths(found), ElementsAre("o.key"));
}

TEST(SameAtSight, AnEmptyValueWhoseDefaultMovedIsAChange) {
  const auto found = compared(
      R"("dialect":2,"attributes":{"port":{"empty":[""],"default_by":{"of":"engine","values":{"a":"1","b":"2"}}}})",
      R"({"engine":"a","port":""})", R"({"engine":"b","port":""})");
  EXPECT_THAT(changed_paths(found), ElementsAre("engine", "port"));
}

TEST(SameAtSight, ATraceHasEveryAttribute) {
  std::vector<Step> trace;
  DiffOptions options;
  options.trace = &trace;
  compared(R"("attributes":{})", R"({"a":1,"o":{"b":2}})", R"({"a":1,"o":{"b":2}})", options);
  EXPECT_EQ(trace.size(), 2u);
}

TEST(SameAtSight, MembersOfBothSidesAreMetInOrder) {
  const auto found = compared(R"("attributes":{})", R"({"a":1,"c":1,"e":1,"z":1})", R"({"b":1,"c":2,"e":1,"zz":1})");
  EXPECT_THAT(changed_paths(found), ElementsAre("a", "b", "c", "z", "zz"));
  EXPECT_THAT(changed_paths(compared(R"("attributes":{})", "{}", R"({"a":1})")), ElementsAre("a"));
  EXPECT_THAT(changed_paths(compared(R"("attributes":{})", R"({"a":1})", "{}")), ElementsAre("a"));
  EXPECT_THAT(changed_paths(compared(R"("attributes":{})", "{}", "{}")), IsEmpty());
}

}  // namespace
}  // namespace driftd::core
