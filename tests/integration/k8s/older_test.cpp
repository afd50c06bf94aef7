// SPDX-License-Identifier: Apache-2.0
// A server of another minor version: the real one, made to behave as 1.33 does (--emulated-version, KEP-4330), whose
// streams of lists are off. Three minor versions back is as far as it goes.
#include <future>

#include "cluster.hpp"

namespace driftd::test {
namespace {

struct K8sOlder : Cluster {
  static inline const std::string kSpace = "older-and-newer";  // its own: the newer server is of all tests
  KubeServer old{{"--emulated-version=1.33"}};

  static void fill(const KubeServer& at) {
    at.create_namespace(kSpace);
    for (int i = 0; i < 50; ++i)
      at.create_secret(kSpace, "s-" + std::to_string(i), {{"value", "v" + std::to_string(i)}});
    at.create("/api/v1/namespaces/" + kSpace + "/configmaps", {{"apiVersion", "v1"},
                                                               {"kind", "ConfigMap"},
                                                               {"metadata", {{"name", "flags"}}},
                                                               {"data", {{"colour", "blue"}}}});
    at.create("/api/v1/namespaces/" + kSpace + "/services",
              {{"apiVersion", "v1"},
               {"kind", "Service"},
               {"metadata", {{"name", "web"}}},
               {"spec", {{"clusterIP", "None"}, {"selector", {{"app", "web"}}}, {"ports", {{{"port", 80}}}}}}});
  }
  static ProviderProbe probe_of(const KubeServer& at) { return probe(with(at.settings({kSpace}), {{"page", 20}})); }
  static int streamed(const KubeServer& at) {
    return at
        .request("GET", secrets(kSpace) +
                            "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                            "resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
        .status;
  }
  static std::map<std::string, json> bodies(const Collected& of) {
    std::map<std::string, json> out;
    for (const auto& record : of.records) out[record.kind + "/" + record.id] = json::parse(record.body);
    return out;
  }
};

TEST_F(K8sOlder, IsListedInPagesAndSaysTheSameAsTheNewerOne) {
  fill(kube());
  fill(old);
  ASSERT_EQ(old.get("/version").at("emulationMinor"), "33");
  ASSERT_EQ(streamed(kube()), 200);
  ASSERT_EQ(streamed(old), 422) << "this test is of a server that does not stream lists";
  const auto lists = [&] { return old.counted("apiserver_request_total", {"resource=\"secrets\"", "verb=\"LIST\""}); };
  const int before = lists();
  ProviderProbe newer = probe_of(kube()), older = probe_of(old);
  const Collected expected = newer.refresh(), got = older.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK) << shown(got);
  EXPECT_EQ(got.complete, expected.complete) << shown(got);
  EXPECT_EQ(got.complete.at("secret"), 50u);
  EXPECT_EQ(bodies(got), bodies(expected));
  EXPECT_GE(lists() - before, 3) << "50 Secrets in pages of 20";

  const Collected watched = watch(older, got.cursor,
                                  {{[&] {
                                      old.patch(secrets(kSpace) + "/s-7", {{"stringData", {{"value", "new"}}}});
                                    },
                                    [&](const Collected& w) { return w.find("secret", kSpace + "/s-7") != nullptr; }}});
  EXPECT_EQ(watched.records.size(), 1u) << shown(watched);
  EXPECT_TRUE(watched.diagnostics.empty()) << shown(watched);
}

/// The second attempt is behind the deletion, and the first has told of what was deleted: no watch from there would say
/// it.
TEST_F(K8sOlder, AListBegunAnewAsItsTokenExpiredVouchesForNothing) {
  constexpr int kPages = 300;
  old.create_namespace(kSpace);
  for (int i = 0; i < kPages; ++i) old.create_secret(kSpace, "s-" + std::to_string(i), {{"value", "v"}});
  ProviderProbe k8s = probe(with(old.settings({kSpace}), {{"page", 1}, {"include", {"secret"}}}));
  ASSERT_NE(k8s.refresh().cursor, "");
  const auto lists = [&] { return old.counted("apiserver_request_total", {"resource=\"secrets\"", "verb=\"LIST\""}); };
  const int before = lists();
  auto writer = std::async(std::launch::async, [&] {
    if (!eventually([&] { return lists() - before >= 2; })) return;
    old.remove(secrets(kSpace) + "/s-0");
    old.compact();
  });
  const Collected got = k8s.refresh();
  writer.get();
  ASSERT_NE(got.find("secret", kSpace + "/s-0"), nullptr) << "it was gone before it was told";
  ASSERT_GT(lists() - before, kPages + 1) << "the list was not begun anew";
  EXPECT_EQ(got.complete.count("secret"), 1u) << shown(got);
  EXPECT_EQ(got.cursor, "");
  const Collected next = k8s.refresh(got.cursor);
  EXPECT_EQ(next.find("secret", kSpace + "/s-0"), nullptr) << shown(next);
  EXPECT_NE(next.cursor, "");
}

}  // namespace
}  // namespace driftd::test
