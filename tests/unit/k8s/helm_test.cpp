// SPDX-License-Identifier: Apache-2.0
// Helm releases, read from the Secrets that hold their revisions: which revision counts, and that one that is too large
// or cannot be read costs only itself or its namespace.
#include "k8s/helm.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace driftd::k8s {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'767'225'600'000'000'000;  // 2026-01-01T00:00:00Z

json revision(int number, const std::string& status) {
  // {"chart":{"metadata":{"name":"app"}},"info":{"status":"deployed"},"version":1,"config":{}} without gzip, as old
  // Helm wrote it
  return {
      {"metadata",
       {{"name", "sh.helm.release.v1.shop.v" + std::to_string(number)},
        {"namespace", "prod"},
        {"labels", {{"owner", "helm"}, {"name", "shop"}, {"version", std::to_string(number)}, {"status", status}}}}},
      {"data",
       {{"release",
         "ZXlKamFHRnlkQ0k2ZXlKdFpYUmhaR0YwWVNJNmV5SnVZVzFsSWpvaVlYQndJbjE5TENKcGJtWnZJanA3SW5OMFlYUjFjeUk2SW1SbGNHeHZlV"
         "1ZrSW4wc0luWmxjbk5wYjI0aU9qRXNJbU52Ym1acFp5STZlMzE5"}}}};
}

std::vector<sdk::Record> releases(const std::vector<json>& secrets, std::vector<sdk::Diagnostic>& diagnostics) {
  HelmReleases all;
  for (const auto& secret : secrets) all.add(secret);
  return all.records(diagnostics, kNow);
}

/// base64 in base64, as Helm and the API wrap it.
std::string wrapped(const std::string& release) {
  const auto base64 = [](const std::string& bytes) {
    static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
      std::uint32_t group = 0;
      for (std::size_t k = 0; k < 3; ++k)
        group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
      for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kLetters[group >> (18 - 6 * k) & 63];
    }
    return out;
  };
  return base64(base64(release));
}

TEST(K8sHelm, OnlyTheHighestDeployedRevisionCounts) {
  std::vector<sdk::Diagnostic> none;
  for (const auto& order : {std::vector{revision(1, "superseded"), revision(2, "deployed"), revision(3, "failed")},
                            std::vector{revision(3, "failed"), revision(2, "deployed"), revision(1, "superseded")}}) {
    const auto records = releases(order, none);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].id, "prod/shop");
    EXPECT_EQ(records[0].metadata.at("revision"), "2");
    EXPECT_TRUE(records[0].unread.empty());
  }
  EXPECT_TRUE(none.empty());
}

TEST(K8sHelm, APendingRevisionMakesTheReleaseUnknown) {
  std::vector<sdk::Diagnostic> none;
  const auto records = releases({revision(2, "deployed"), revision(3, "pending-upgrade")}, none);
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0].unread.size(), 1u);
  EXPECT_THAT(records[0].unread[0].reason, HasSubstr("revision 3 is in flight"));
  EXPECT_EQ(records[0].body, "{}") << "what nobody may judge is not there to be approved";
  EXPECT_TRUE(records[0].sensitive.empty());
}

/// Anybody may create a Secret that claims to be pending: it hides a release for a while, but not forever.
TEST(K8sHelm, ARevisionThatIsPendingForTooLongHidesNothingAndIsTold) {
  for (const auto& [created, hides] :
       {std::pair("2025-12-31T23:50:01Z", true), {"2025-12-31T23:49:59Z", false}, {"2020-01-01T00:00:00Z", false}}) {
    std::vector<sdk::Diagnostic> told;
    json pending = revision(3, "pending-upgrade");
    pending["metadata"]["creationTimestamp"] = created;
    const auto records = releases({revision(2, "deployed"), pending}, told);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].unread.empty(), !hides) << created;
    EXPECT_EQ(told.empty(), hides) << created;
    if (hides) continue;
    EXPECT_EQ(told[0].id, "prod/shop");
    EXPECT_THAT(told[0].text, HasSubstr("revision 3 is pending-upgrade since " + std::string(created)));
    EXPECT_THAT(told[0].text, HasSubstr("revision 2 is judged"));
  }
}

TEST(K8sHelm, ARevisionThatIsPendingBelowTheDeployedOneIsOfThePast) {
  std::vector<sdk::Diagnostic> none;
  const auto records = releases({revision(2, "deployed"), revision(1, "pending-install")}, none);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_TRUE(records[0].unread.empty());
}

/// A tenant can make a Secret of a few hundred bytes that nests too deep: the values of that release are unread, and
/// everything else is judged.
TEST(K8sHelm, ValuesThatNestTooDeepCostThemselvesOnly) {
  for (const int depth : {129, 300, 400'000}) {
    std::string values;
    for (int i = 0; i < depth; ++i) values += "{\"a\":";
    values += "1" + std::string(static_cast<std::size_t>(depth), '}');
    json deep = revision(4, "deployed");
    deep["data"]["release"] = wrapped(
        R"({"chart":{"metadata":{"name":"app","version":"1.2"}},"info":{"status":"deployed"},"version":4,"config":)" +
        values + "}");
    std::vector<sdk::Diagnostic> told;
    const auto records = releases({deep}, told);
    ASSERT_EQ(records.size(), 1u) << depth;
    EXPECT_EQ(json::parse(records[0].body)["chart_version"], "1.2");
    EXPECT_FALSE(json::parse(records[0].body).contains("values"));
    ASSERT_EQ(records[0].unread.size(), 1u);
    EXPECT_EQ(records[0].unread[0].path, "values");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_THAT(told[0].text, HasSubstr("prod/shop: the release nests deeper than 128"));
  }
}

/// {"a":[{},{},…]} packs 700:1: as a tree it is thirty times its text, which a worker of 512 MiB does not survive.
TEST(K8sHelm, AReleaseOfTooManyValuesCostsItselfAndIsNeverATree) {
  std::string values;
  for (std::size_t i = 0; i < 11'000'000; ++i) values += "{},";
  json bomb = revision(1, "deployed");
  bomb["metadata"]["labels"]["name"] = "evil";
  bomb["data"]["release"] = wrapped(R"({"chart":{},"info":{},"config":{"a":[)" + values + "{}]}}");
  std::vector<sdk::Diagnostic> told;
  const auto records = releases({revision(2, "deployed"), bomb}, told);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].id, "prod/evil");
  EXPECT_EQ(records[0].body, "{}");
  ASSERT_EQ(records[0].unread.size(), 1u);
  EXPECT_EQ(records[0].unread[0].path, "**");
  EXPECT_EQ(records[0].unread[0].code, DRIFTD_BUDGET);
  EXPECT_THAT(records[0].unread[0].reason, HasSubstr("more than 270000 values"));
  EXPECT_TRUE(records[1].unread.empty()) << "the other release of the namespace";
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, "prod/evil");
}

/// What exceeds the host's limits is left out here; otherwise the whole record would be lost.
TEST(K8sHelm, ValuesThatNoAgentTakesCostThemselvesOnly) {
  json large = revision(4, "deployed");
  large["data"]["release"] =
      wrapped(R"({"chart":{"metadata":{"version":"1.2"}},"info":{"status":"deployed"},"version":4,"config":{"a":")" +
              std::string(5u << 20, 'x') + "\"}}");
  std::vector<sdk::Diagnostic> told;
  const auto records = releases({large}, told);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(json::parse(records[0].body)["chart_version"], "1.2");
  EXPECT_FALSE(json::parse(records[0].body).contains("values"));
  ASSERT_EQ(records[0].unread.size(), 1u);
  EXPECT_EQ(records[0].unread[0].path, "values");
}

json named(json secret, const std::string& space, const std::string& name) {
  secret["metadata"]["namespace"] = space;
  secret["metadata"]["labels"]["name"] = name;
  return secret;
}

/// Hundreds of Secrets that unpack to 32 MiB each would use up the time of the call: some of the namespace are read,
/// and the others are named. Another namespace is not affected.
TEST(K8sHelm, ANamespaceThatUnpacksToTooMuchIsReadInPartAndNoOther) {
  json large = revision(1, "deployed");
  large["data"]["release"] =
      wrapped(R"({"chart":{},"info":{},"version":1,"manifest":")" + std::string(20u << 20, 'x') + "\"}");
  std::vector<json> secrets;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) secrets.push_back(named(large, "evil", name));
  secrets.push_back(named(revision(2, "deployed"), "prod", "shop"));
  std::vector<sdk::Diagnostic> told;
  const auto records = releases(secrets, told);
  ASSERT_EQ(records.size(), 7u) << "nothing counts as gone";
  std::vector<std::string> unread;
  for (const auto& record : records) {
    if (!record.unread.empty()) unread.push_back(record.id);
  }
  EXPECT_EQ(unread, (std::vector<std::string>{"evil/e", "evil/f"})) << "64 MiB are reached by the fourth";
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].code, DRIFTD_BUDGET);
}

TEST(K8sHelm, NamespacesThatKeepTooMuchGiveOfTheirsAndOthersAreReadWhereverTheyStand) {
  json large = revision(1, "deployed");
  large["data"]["release"] =
      wrapped(R"({"chart":{},"info":{},"version":1,"config":{"a":")" + std::string(3u << 20, 'x') + "\"}}");
  std::vector<json> secrets;
  for (int i = 0; i < 60; ++i)
    secrets.push_back(named(large, "evil" + std::to_string(i % 3), "r" + std::to_string(100 + i)));
  secrets.push_back(named(revision(2, "deployed"), "prod", "shop"));
  std::vector<sdk::Diagnostic> told;
  const auto records = releases(secrets, told);
  ASSERT_EQ(records.size(), 61u) << "nothing counts as gone";
  std::size_t kept = 0;
  for (const auto& record : records) {
    kept += record.body.size();
    EXPECT_TRUE(record.unread.empty() || record.id.starts_with("evil")) << record.id;
  }
  EXPECT_LE(kept, kMaxKept);
  EXPECT_GT(kept, kMaxKept - (8u << 20));
  EXPECT_EQ(told.size(), 18u) << "of 180 MiB some 52 are too much";
  EXPECT_THAT(told.at(0).text, HasSubstr("its namespace has most"));
}

/// Revisions before the shown one are not unpacked, so they do not count against the limit of the namespace.
TEST(K8sHelm, OnlyTheRevisionThatIsShownIsUnpacked) {
  std::vector<json> secrets;
  const std::string large =
      wrapped(R"({"chart":{},"info":{},"version":1,"manifest":")" + std::string(1u << 20, 'x') + "\"}");
  for (int i = 1; i <= 100; ++i) {
    secrets.push_back(revision(i, "deployed"));
    if (i < 100) secrets.back()["data"]["release"] = i < 4 ? large : "no base64: that it was unpacked is reported";
  }
  std::vector<sdk::Diagnostic> none;
  const auto records = releases(secrets, none);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].metadata.at("revision"), "100");
  EXPECT_TRUE(records[0].unread.empty());
  EXPECT_TRUE(none.empty());
}

TEST(K8sHelm, WhatCannotBeUnpackedIsToldAndNotGone) {
  std::vector<sdk::Diagnostic> diagnostics;
  json broken = revision(1, "deployed");
  broken["data"]["release"] = "bm9uc2Vuc2U=";
  const auto records = releases({broken}, diagnostics);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].id, "prod/shop");
  ASSERT_EQ(records[0].unread.size(), 1u);
  EXPECT_EQ(records[0].unread[0].path, "**");
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].code, DRIFTD_CORRUPT);
  EXPECT_EQ(diagnostics[0].id, "prod/shop");
}

}  // namespace
}  // namespace driftd::k8s
