// SPDX-License-Identifier: Apache-2.0
// Attacks by a tenant through values: ConfigMaps and Helm releases that cost much when they are read.
#include <set>

#include "hostile_tenant.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

/// Returns YAML with `count` aliases of one scalar of `bytes` bytes.
std::string alias_bomb(std::size_t bytes, int count) {
  std::string out = "a: &a \"" + std::string(bytes, 'x') + "\"\nb: [";
  for (int i = 0; i < count; ++i) out += i == 0 ? "*a" : ",*a";
  return out + "]\n";
}

/// Returns YAML in which each of `depth` lines has ten aliases of the line before: 10^depth values.
std::string nested_aliases(int depth) {
  std::string out = "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < depth; ++i) {
    const std::string before = "*l" + std::to_string(i - 1);
    out += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) out += (n == 0 ? "" : ",") + before;
    out += "]\n";
  }
  return out;
}

TEST_F(HostileTenant, AConfigMapThatGrowsWhenItIsReadCostsItsOwnVerdictAlone) {
  create_map("quiet", "greeting", "hello");
  const std::vector<std::pair<std::string, std::string>> bombs{
      {"aliases.yaml", alias_bomb(800'000, 3'000)},
      {"nested.yaml", nested_aliases(12)},
      {"deep.yaml", std::string(400'000, '[')},
      {"deep.json", std::string(400'000, '[')},
      {"flow.yaml", "a: " + std::string(200'000, '{')},
      {"huge.properties", std::string(400'000, '\\')},
      {"number.json", "{\"a\":1e999999999}"},
      {"pem.pem", [] {
         std::string out;
         for (int i = 0; i < 8'000; ++i) out += "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
         return out;
       }()}};
  // reading these would cost more than the limits of docs/formats.md, so they are unknown; the others are texts
  const std::set<std::string> too_large{"aliases.yaml", "nested.yaml", "deep.yaml", "flow.yaml"};
  for (const auto& [key, value] : bombs) create_map(key, key, "a: 1");
  ASSERT_NO_FATAL_FAILURE(watch());
  for (const auto& [key, value] : bombs) {
    set_in_map(key, key, value);
    EXPECT_TRUE(cluster_is_watched()) << key;
    EXPECT_TRUE(has_verdict(key, too_large.contains(key))) << key;
  }
  ASSERT_NO_FATAL_FAILURE(expect_unharmed());
  agent_->kill();
  agent_->start();  // now the bombs exist from the start
  pid_ = agent_->pid();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cluster", "cache"}); }, seconds(60))) << agent_->log();
  EXPECT_TRUE(cluster_is_watched());
  expect_unharmed();
}

TEST_F(HostileTenant, APoisonousReleaseSecretBlindsNobody) {
  create_map("quiet", "greeting", "hello");
  ASSERT_NO_FATAL_FAILURE(watch());
  for (const int depth : {300, 100'000}) {
    std::string nested = "1";
    nested =
        std::string(static_cast<std::size_t>(depth), '[') + nested + std::string(static_cast<std::size_t>(depth), ']');
    const std::string release =
        R"({"name":"evil","version":1,"info":{"status":"deployed"},"config":{"a":)" + nested + "}}";
    release_as("evil", "evil" + std::to_string(depth), 1, release);
    EXPECT_TRUE(cluster_is_watched()) << depth;
    // 3: one release is unknown; all else is read and judged
    ASSERT_EQ(agent_->cli({"refresh", "cluster", "--full"}).code, 3) << agent_->log();
    EXPECT_TRUE(backend_reports("cluster", "tenant/evil: the release")) << depth << ": it is shown as read";
  }
  EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
  EXPECT_EQ(agent_->log().find("killed by signal"), std::string::npos) << agent_->log();
  expect_unharmed();
}

/// A Secret of some ten kilobytes unpacks to 33 MB with 11 million values, nearly 1 GB as a tree. This release is
/// reported as unread by its name. The same worker judges the others, also if the bomb exists when the agent starts.
TEST_F(HostileTenant, AReleaseThatUnpacksToMillionsOfValuesCostsItselfAlone) {
  create_map("quiet", "greeting", "hello");
  ASSERT_NO_FATAL_FAILURE(release("calm", 1, "1.0.1", R"({"a":1})"));
  ASSERT_NO_FATAL_FAILURE(watch());
  std::string values;
  for (int i = 0; i < 11'000'000; ++i) values += "{},";
  ASSERT_NO_FATAL_FAILURE(release("bomb", 1, "1.0.1", R"({"a":[)" + values + "{}]}"));
  const auto judged = [&](int version) {
    const std::string mark = "1.0." + std::to_string(version);
    ASSERT_NO_FATAL_FAILURE(release("calm", version, mark, R"({"a":1})"));
    EXPECT_TRUE(drift_appears("cluster", "\"" + mark + "\"", "*calm", seconds(60))) << agent_->log();
    EXPECT_TRUE(cluster_is_watched());
    EXPECT_EQ(agent_->cli({"refresh", "cluster", "--full"}).code, 3) << "the bomb is unknown: " << agent_->log();
    EXPECT_TRUE(backend_reports("cluster", "tenant/bomb")) << agent_->backend("cluster")->dump();
    EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
    EXPECT_EQ(agent_->log().find("killed by signal"), std::string::npos) << agent_->log();
  };
  ASSERT_NO_FATAL_FAILURE(judged(2));
  ASSERT_NO_FATAL_FAILURE(expect_unharmed());
  agent_->kill();
  agent_->start();  // now the bomb exists from the start
  pid_ = agent_->pid();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cluster", "cache"}); }, seconds(60))) << agent_->log();
  ASSERT_NO_FATAL_FAILURE(judged(3));
  expect_nothing_deleted("cluster");
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
