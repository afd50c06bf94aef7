// SPDX-License-Identifier: Apache-2.0
// `was:` gives a backend another name and nothing else (semantics 1, 3).
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using testing::IsEmpty;
using testing::SizeIs;

using RenamedEngine = EngineOnTheStore;

TEST_F(RenamedEngine, AnotherSystemIsAskedAboutAfterARename) {
  baseline();
  restart_as("shop", "b");
  refresh();
  ASSERT_TRUE(report_.complete());
  line_->world->identity = "system-2";
  remove(0, 5);
  refresh();
  EXPECT_FALSE(report_.status);
  ASSERT_THAT(line_->drifts(true), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].resource, (core::ResourceId{"backend", "shop"}));
}

TEST_F(RenamedEngine, QuestionThatIsOpenStaysOpenAndIsAnswered) {
  baseline();
  line_->world->identity = "system-2";
  remove(0, 5);
  refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  const std::string asked = line_->drifts()[0].id;
  restart_as("shop", "b");
  refresh();
  EXPECT_FALSE(report_.status);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].id, asked);
  EXPECT_EQ(line_->drifts()[0].resource, (core::ResourceId{"backend", "shop"}));
  ASSERT_TRUE(line_->decide(asked, decision(Decision::Verb::approve)));
  refresh();
  EXPECT_TRUE(report_.complete());
  EXPECT_THAT(line_->drifts(), SizeIs(5));
}

TEST_F(RenamedEngine, LivingBackendIsTakenBeforeALeftOneOfThatName) {
  line_->other->declared_kinds = {{"nobody", "thing"}};  // so that it runs
  line_->other->resources[thing(1)] = R"({"partitions":9})";
  baseline();
  line_->refresh(true, "other");
  restart();
  refresh();
  const std::string uid = line_->view().uid;
  another_process();
  line_->name = "other";
  line_->was = "b";
  *line_->other = *line_->world;
  line_->start(false);
  refresh();
  EXPECT_EQ(line_->view().uid, uid);
  EXPECT_TRUE(report_.complete());
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
