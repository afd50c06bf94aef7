// SPDX-License-Identifier: Apache-2.0
// Releases that the real Helm makes: a change of anything that a record shows of one is seen.
#include <filesystem>

#include "cluster.hpp"
#include "judged.hpp"

namespace driftd::test {
namespace {

/// A chart with one ConfigMap.
struct Chart {
  std::string name = "app", version = "0.1.0", app_version = "1", key = "a";
};

struct K8sHelm : Cluster {
  K8sHelm() : space(fresh_namespace()), k8s(probe(with(kube().settings({space}), {{"include", {"helm_release"}}}))) {}

  /// Installs or upgrades the release `shop` and returns its record. `fails`: the API server must refuse the chart.
  sdk::Record deploy(const Chart& chart, std::vector<std::string> values, bool fails = false) {
    std::filesystem::create_directories(dir.file("chart/templates"));
    dir.write("chart/Chart.yaml", "apiVersion: v2\nname: " + chart.name + "\nversion: " + chart.version +
                                      "\nappVersion: \"" + chart.app_version + "\"\n");
    dir.write("chart/templates/map.yaml",
              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {" + chart.key + ": x}\n");
    std::vector<std::string> words = {"upgrade", "--install", "shop", dir.file("chart"), "-n", space};
    for (auto& each : values) words.insert(words.end(), {"--set", std::move(each)});
    const Output done = kube().helm(words);
    EXPECT_EQ(done.code != 0, fails) << done.err;
    const Collected got = k8s.refresh();
    const sdk::Record* record = got.find("helm_release", space + "/shop");
    if (record == nullptr) throw std::runtime_error("no release is listed: " + render(got));
    return *record;
  }
  std::vector<std::string> changes(const sdk::Record& before, const sdk::Record& after) const {
    return judged(core::KindSchema::parse(k8s.schema("helm_release")).value(), before, after).changes;
  }

  const std::string space;
  const TempDir dir;
  ProviderProbe k8s;
};

TEST_F(K8sHelm, AChangeOfAnyFieldOfAReleaseIsSeen) {
  using Paths = std::vector<std::string>;
  const sdk::Record base = deploy({}, {"a.b=1", "c=x"});
  EXPECT_EQ(changes(base, deploy({}, {"a.b=1", "c=x"})), Paths{}) << "another revision is no change";
  EXPECT_EQ(changes(base, deploy({"other"}, {"a.b=1", "c=x"})), Paths{"chart"});
  EXPECT_EQ(changes(base, deploy({"app", "0.1.1"}, {"a.b=1", "c=x"})), Paths{"chart_version"});
  EXPECT_EQ(changes(base, deploy({"app", "0.1.0", "2"}, {"a.b=1", "c=x"})), Paths{"app_version"});
  EXPECT_EQ(changes(base, deploy({}, {"a.b=2", "c=x"})), Paths{"values.a.b"});
  EXPECT_EQ(changes(base, deploy({}, {"a.b=1"})), Paths{"values.c"});
  EXPECT_EQ(changes(base, deploy({}, {"a.b=1", "c=null"})), Paths{"values.c"});
  EXPECT_EQ(changes(base, deploy({}, {"a.b=1", "c=x", "d=y"})), Paths{"values.d"});
  EXPECT_EQ(changes(base, deploy({}, {"a.b=1", "c=x"})), Paths{});
  const json members = json::parse(base.body);
  EXPECT_EQ(members.size(), 5u) << "something more is compared, and not tried here: " << members;
}

TEST_F(K8sHelm, AReleaseThatFailedHasAnotherStatusThanOneThatIsDeployed) {
  const sdk::Record failed = deploy({"app", "0.1.0", "1", "\"not/a key\""}, {}, true), deployed = deploy({}, {});
  EXPECT_EQ(changes(failed, deployed), std::vector<std::string>{"status"});
  EXPECT_EQ(changes(deployed, failed), std::vector<std::string>{"status"});
}

}  // namespace
}  // namespace driftd::test
