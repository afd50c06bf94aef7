// SPDX-License-Identifier: Apache-2.0
// A server of an older minor version: the real one, made to behave like 1.33 (--emulated-version, KEP-4330), which does
// not stream lists. A server can emulate at most three minor versions back.
#include <future>

#include "cluster.hpp"

namespace driftd::test {
namespace {

struct K8sOlder : Cluster {
  static inline const std::string kSpace = "older-and-newer";  // its own, for all tests share the newer server
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
  /// The status with which the server answers a request for a streamed list.
  static int status_of_streamed_list(const KubeServer& at) {
    return at
        .request("GET", secrets(kSpace) +
                            "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                            "resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
        .status;
  }
  static std::map<std::string, json> bodies(const Collected& got) {
    std::map<std::string, json> out;
    for (const auto& record : got.records) out[record.kind + "/" + record.id] = json::parse(record.body);
    return out;
  }
};

TEST_F(K8sOlder, IsListedInPagesAndSaysTheSameAsTheNewerOne) {
  fill(kube());
  fill(old);
  ASSERT_EQ(old.get("/version").at("emulationMinor"), "33");
  ASSERT_EQ(status_of_streamed_list(kube()), 200);
  ASSERT_EQ(status_of_streamed_list(old), 422) << "this test needs a server that does not stream lists";
  const auto lists = [&] { return old.counted("apiserver_request_total", {"resource=\"secrets\"", "verb=\"LIST\""}); };
  const int before = lists();
  ProviderProbe newer = probe_of(kube()), older = probe_of(old);
  const Collected expected = newer.refresh(), got = older.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK) << render(got);
  EXPECT_EQ(got.complete, expected.complete) << render(got);
  EXPECT_EQ(got.complete.at("secret"), 50u);
  EXPECT_EQ(bodies(got), bodies(expected));
  EXPECT_GE(lists() - before, 3) << "50 Secrets in pages of 20";

  const Collected watched = watch(older, got.cursor,
                                  {{[&] {
                                      old.patch(secrets(kSpace) + "/s-7", {{"stringData", {{"value", "new"}}}});
                                    },
                                    [&](const Collected& w) { return w.find("secret", kSpace + "/s-7") != nullptr; }}});
  EXPECT_EQ(watched.records.size(), 1u) << render(watched);
  EXPECT_TRUE(watched.diagnostics.empty()) << render(watched);
}

/// The list is begun again after a deletion, when it had already pushed what was deleted. A watch from the second list
/// on would not push that deletion, so this refresh must not give a cursor.
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
  ASSERT_NE(got.find("secret", kSpace + "/s-0"), nullptr) << "the Secret was deleted before the list came to it";
  ASSERT_GT(lists() - before, kPages + 1) << "the list was not begun a second time";
  EXPECT_EQ(got.complete.count("secret"), 1u) << render(got);
  EXPECT_EQ(got.cursor, "");
  const Collected next = k8s.refresh(got.cursor);
  EXPECT_EQ(next.find("secret", kSpace + "/s-0"), nullptr) << render(next);
  EXPECT_NE(next.cursor, "");
}

}  // namespace
}  // namespace driftd::test
