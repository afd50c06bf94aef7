// SPDX-License-Identifier: Apache-2.0
// Links that decide, in a real store: used once, together with what they decide, or not at all.
#include <gmock/gmock.h>

#include "core/link_token.hpp"
#include "delivery/decision_links.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

class LinkTest : public StoreTest {
 protected:
  core::DecisionLink link(char digit, Nanos lives = 3'600 * kSecond) {
    const Nanos now = bench.clock.now;
    return {std::string(64, digit), "e1", "desk", "d-1", "0123456789ab", "approve", now, now + lives};
  }
  /// A decision by this link: a resource and an audit line.
  core::PageCommit decision(char digit, const std::string& name) {
    core::PageCommit page = page_of({resource_write(name)}, {});
    core::AuditEntry line;
    line.actor = "link";
    line.verb = "approve";
    line.subject = name;
    page.audit.push_back(line);
    page.link = std::string(64, digit);
    page.link_used_ns = bench.clock.now;
    return page;
  }
  std::size_t lines() { return bench.get(bench->audit(1'000)).size(); }
  std::size_t resources() { return bench.get(bench->resources("orders", "", 1'000)).size(); }
};

TEST_F(LinkTest, ADecisionUsesItsLinkOrWritesNothing) {
  ASSERT_TRUE(bench.wait(bench->add_links({link('a'), link('b', kSecond)})));
  const std::size_t before = lines();
  ASSERT_TRUE(bench.wait(bench->commit(decision('a', "one"))));
  EXPECT_EQ(lines(), before + 1);
  EXPECT_EQ(bench.get(bench->find_link(std::string(64, 'a')))->used_ns, bench.clock.now);
  const auto again = bench.wait(bench->commit(decision('a', "two")));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::denied);
  const auto unknown = bench.wait(bench->commit(decision('f', "three")));
  EXPECT_FALSE(unknown);
  bench.clock.now += kSecond;
  EXPECT_FALSE(bench.wait(bench->commit(decision('b', "four")))) << "it has expired";
  EXPECT_EQ(lines(), before + 1);
  EXPECT_EQ(resources(), 1u);
}

TEST_F(LinkTest, OfManyDecisionsAtOnceOneIsWritten) {
  ASSERT_TRUE(bench.wait(bench->add_links({link('a')})));
  std::vector<Task<Result<core::CommitResult>>> tasks;
  for (int i = 0; i < 16; ++i) tasks.push_back(bench->commit(decision('a', "r" + std::to_string(i))));
  const auto results = bench.wait_all(std::move(tasks));
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](const auto& one) { return one.has_value(); }), 1);
  EXPECT_EQ(resources(), 1u);
}

TEST_F(LinkTest, AUsedLinkStaysUsedAfterARestartAndIsDeletedInTime) {
  ASSERT_TRUE(bench.wait(bench->add_links({link('a')})));
  ASSERT_TRUE(bench.wait(bench->commit(decision('a', "one"))));
  restart();
  EXPECT_FALSE(bench.wait(bench->commit(decision('a', "two"))));
  bench.clock.now += 2 * 86'400 * kSecond;
  ASSERT_TRUE(bench.wait(bench->add_links({link('c')})));
  EXPECT_FALSE(bench.get(bench->find_link(std::string(64, 'a'))).has_value());
  EXPECT_TRUE(bench.get(bench->find_link(std::string(64, 'c'))).has_value());
}

TEST_F(LinkTest, ALinkThatSomebodyWroteIntoTheFileIsNotKnown) {
  ASSERT_TRUE(bench.wait(bench->add_links({link('a')})));
  tamper(file(), "UPDATE decision_link SET action = 'ignore'");
  EXPECT_FALSE(bench.get(bench->find_link(std::string(64, 'a'))).has_value());
  EXPECT_FALSE(bench.wait(bench->commit(decision('a', "one"))));
}

/// The tests of the messages are in unit/chat; here is what the store gets to know.
TEST_F(LinkTest, TheStoreKnowsHashesOnlyAndARetryHasTheSameLinks) {
  core::LinkSettings settings;
  settings.base_url = "https://ops.example";
  delivery::DecisionLinks links(*bench, bench.clock, settings);
  const auto made = bench.get(links.make("e1", "desk", {{"d-1", "0123456789ab"}, {"d-2", "fedcba987654", false}}));
  ASSERT_EQ(made.size(), 2u);
  ASSERT_EQ(made[0].size(), 4u);
  EXPECT_EQ(made[1].size(), 3u) << "what cannot be approved has no link to approve";
  const std::string url = made[0][0].url, token = url.substr(url.rfind('/') + 1);
  EXPECT_EQ(token.size(), 2 * core::kLinkTokenBytes);
  const auto stored = bench.get(bench->find_link(core::link_hash(token)));
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->action, "approve");
  EXPECT_EQ(stored->digest, "0123456789ab");
  EXPECT_EQ(stored->expires_ns, bench.clock.now + 86'400 * kSecond);
  for (const char* end : {"", "-wal"}) EXPECT_EQ(read_file(file() + end).find(token), std::string::npos);
  const auto again = bench.get(links.make("e1", "desk", {{"d-1", "0123456789ab"}, {"d-2", "fedcba987654", false}}));
  EXPECT_EQ(again[0][0].url, url);
  EXPECT_NE(bench.get(links.make("e2", "desk", {{"d-1", "0123456789ab"}}))[0][0].url, url);
}

TEST(LinkToken, OnlyHexOfItsLengthIsAToken) {
  EXPECT_EQ(core::link_hash(""), "");
  EXPECT_EQ(core::link_hash(std::string(39, 'a')), "");
  EXPECT_EQ(core::link_hash(std::string(40, 'A')), "");
  EXPECT_EQ(core::link_hash(std::string(40, '\'')), "");
  EXPECT_EQ(core::link_hash(std::string(40, 'a')).size(), 64u);
}

}  // namespace
}  // namespace driftd::test
