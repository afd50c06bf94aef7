// SPDX-License-Identifier: Apache-2.0
// Tables of peers that are older, newer or broken.
#include "worker/negotiate.hpp"

#include <gmock/gmock.h>

#include "worker/extensions.hpp"
#include "worker/library.hpp"

namespace driftd::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Fn = driftd_status (*)();
driftd_status works() { return DRIFTD_OK; }
driftd_status unsupported() { return DRIFTD_UNSUPPORTED; }

/// A table that got a second function after its first release.
struct Grown {
  std::uint32_t size = sizeof(Grown), reserved = 0;
  Fn first = &unsupported, second = &unsupported;
};
constexpr std::size_t kReleased = 16;

struct Peer {
  std::uint32_t size = sizeof(Peer), reserved = 0;
  Fn first = &works, second = &works, third = &works;
};

Status adopt(Grown& into, const Peer& peer) {
  return adopt_table({&into, sizeof into, kReleased, {"first", "second"}}, &peer, "x.so");
}

TEST(AdoptTable, ASlotThatAnOlderPeerDoesNotHaveAnswersUnsupported) {
  Peer older;
  older.size = kReleased;
  older.second = nullptr;  // beyond the size of the older table, so not read
  Grown ours;
  ASSERT_TRUE(adopt(ours, older));
  EXPECT_EQ(ours.first(), DRIFTD_OK);
  EXPECT_EQ(ours.second(), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(ours.size, sizeof(Grown));
}

TEST(AdoptTable, SlotsThatANewerPeerHasBesideAreNotRead) {
  Peer newer;
  newer.third = nullptr;
  Grown ours;
  ASSERT_TRUE(adopt(ours, newer));
  EXPECT_EQ(ours.second(), DRIFTD_OK);
  EXPECT_EQ(ours.size, sizeof(Grown));
}

TEST(AdoptTable, NullInsideTheSizeIsRefusedByName) {
  Peer broken;
  broken.second = nullptr;
  Grown ours;
  const Status refused = adopt(ours, broken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid);
  EXPECT_THAT(refused.error().message, HasSubstr("x.so: slot `second` is NULL inside the declared size of 32 bytes"));
}

TEST(AdoptTable, SmallerThanAtItsReleaseIsRefusedByTheMissingSlot) {
  Peer small;
  for (const std::uint32_t size : {0u, 8u, 15u}) {
    small.size = size;
    Grown ours;
    const Status refused = adopt(ours, small);
    ASSERT_FALSE(refused) << size;
    EXPECT_THAT(refused.error().message, HasSubstr("expected at least 16: slot `first` is missing"));
  }
}

TEST(UnsupportedTable, AnswersUnsupportedInEveryFunction) {
  const auto table = unsupported_table();
  EXPECT_EQ(table.describe(nullptr, nullptr), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.schema({}, nullptr, nullptr), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.open(1, nullptr, nullptr), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.read(nullptr, 1, nullptr, 0, 0), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.refresh(nullptr, 1, nullptr, nullptr), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.diff(nullptr, nullptr, nullptr, nullptr), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.health(nullptr, 1, nullptr, nullptr), DRIFTD_UNSUPPORTED);
  EXPECT_EQ(table.query({}, 1), nullptr);
}

/// A plugin whose query() answers what the test sets.
class OfferedExtensions : public ::testing::Test {
 protected:
  OfferedExtensions() {
    library_.file = "x.so";
    library_.table = unsupported_table();
    library_.table.query = [](driftd_str id, std::uint32_t revision) -> const void* {
      const std::string name = std::string(id.data, id.len) + "/" + std::to_string(revision);
      asked_.push_back(name);
      const auto found = tables_.find(name);
      return found == tables_.end() ? nullptr : found->second;
    };
    tables_.clear();
    asked_.clear();
  }
  void describes(const std::string& extensions) {
    library_.loaded.describe = R"({"id":"x","extensions":[)" + extensions + "]}";
  }
  std::string refusal() {
    const auto adopted = adopt_extensions(library_);
    return adopted ? "" : adopted.error().message;
  }
  Library library_;
  static inline std::map<std::string, const void*> tables_;
  static inline std::vector<std::string> asked_;
  driftd_discover_table discover_{sizeof(driftd_discover_table), 0,
                                  [](driftd_instance, driftd_call, const driftd_discover_args*, driftd_discovered_fn,
                                     void*, driftd_discover_result*) -> driftd_status { return DRIFTD_OK; }};
  driftd_apply_table apply_{sizeof(driftd_apply_table), 0,
                            [](driftd_instance, driftd_call, const driftd_apply_args*, driftd_applied_fn,
                               void*) -> driftd_status { return DRIFTD_OK; }};
};

TEST_F(OfferedExtensions, OneThatIsWholeIsAdopted) {
  describes(R"({"id":"driftd.discover","revision":1})");
  tables_["driftd.discover/1"] = &discover_;
  const auto adopted = adopt_extensions(library_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(adopted->discover.discover, discover_.discover);
  EXPECT_EQ(adopted->upgrade.upgrade, nullptr);
  EXPECT_THAT(adopted->offered, ElementsAre(core::Extension{"driftd.discover", 1}));
}

TEST_F(OfferedExtensions, HalfOfOneNamesTheMissingHalf) {
  describes(R"({"id":"driftd.discover","revision":1})");
  EXPECT_EQ(
      refusal(),
      "x.so: half of extension driftd.discover/1: describe lists it, but query answers NULL; the function table is "
      "missing");
  tables_["driftd.discover/1"] = &discover_;
  describes("");
  EXPECT_EQ(refusal(),
            "x.so: half of extension driftd.discover/1: query answers a table, but `extensions` of describe "
            "does not list it");
  describes(R"({"id":"driftd.discover","revision":1})");
  discover_.discover = nullptr;
  EXPECT_THAT(refusal(), HasSubstr("half of extension driftd.discover/1: slot `discover` is NULL"));
  discover_.size = 8;
  EXPECT_THAT(refusal(), HasSubstr("expected at least 16: slot `discover` is missing"));
}

TEST_F(OfferedExtensions, EachOneThatTheHostKnowsIsAskedFor) {
  describes(R"({"id":"driftd.apply","revision":1})");
  tables_["driftd.apply/1"] = &apply_;
  const auto adopted = adopt_extensions(library_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(adopted->apply.apply, apply_.apply);
  EXPECT_THAT(adopted->offered, ElementsAre(core::Extension{"driftd.apply", 1}));
  EXPECT_THAT(asked_, ElementsAre("driftd.apply/1", "driftd.discover/1", "driftd.upgrade/1", "driftd.watch/1"));
}

TEST_F(OfferedExtensions, OthersAndOtherRevisionsAreLeftAlone) {
  describes(R"({"id":"driftd.teleport","revision":1},{"id":"driftd.watch","revision":7},{"id":7},"odd")");
  const auto adopted = adopt_extensions(library_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_THAT(adopted->offered, IsEmpty());
}

}  // namespace
}  // namespace driftd::worker
