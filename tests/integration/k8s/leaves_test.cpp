// SPDX-License-Identifier: Apache-2.0
// Every field of every kind, as the API server itself documents it: each is changed on a real object, and the change
// must be seen under the packaged schema, unless the provider's table of exceptions says why it need not be.
// DRIFTD_LEAVES_OF=<kind> runs one.
#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>

#include "cluster.hpp"
#include "judged.hpp"
#include "leaf_trials.hpp"

namespace driftd::test {
namespace {

struct Counts {
  std::size_t leaves = 0, seen = 0, alone = 0, excepted = 0, refused = 0, missed = 0, outside = 0;
};

/// The latest record of each id.
std::map<std::string, const sdk::Record*> by_id(const Collected& got) {
  std::map<std::string, const sdk::Record*> out;
  for (const auto& record : got.records) out[record.id] = &record;
  return out;
}

/// The API server without the admission that keeps claims from being deleted.
struct K8sLeaves : ::testing::Test {
  K8sLeaves()
      : kube({"--disable-admission-plugins", "StorageObjectInUseProtection", "--allow-privileged",
              "--service-cluster-ip-range", "10.96.0.0/16,fd00:96::/112", "--runtime-config",
              "scheduling.k8s.io/v1alpha2=true", "--feature-gates",
              "ClusterTrustBundle=true,ClusterTrustBundleProjection=true,ContainerStopSignals=true,"
              "CrossNamespaceVolumeDataSource=true,GenericWorkload=true,PodCertificateRequest=true"}),
        table(read_file(DRIFTD_SOURCE_DIR "/tests/integration/k8s/leaves.json")) {}

  ProviderProbe probe_of(const LeafKind& kind, const std::string& space) const {
    json settings = kube.settings({space});
    settings["include"] = {kind.kind};
    if (!kind.namespaced) settings.erase("namespaces");
    return ProviderProbe("providers/k8s.so", settings);
  }

  /// Changes each leaf of the kind and judges what the provider says before and after.
  void run(const LeafKind& kind) {
    const std::string space = "of-" + std::to_string(&kind - table.kinds().data());
    kube.create_namespace(space);
    ProviderProbe k8s = probe_of(kind, space);
    const auto schema = core::KindSchema::parse(k8s.schema(kind.kind));
    if (!schema) ADD_FAILURE() << kind.kind << ": " << schema.error().message;
    LeafTrials trials(kube, table, kind, space);
    trials.create();
    const Collected before = k8s.refresh({}, std::chrono::minutes(2));
    trials.change();
    const Collected after = k8s.refresh({}, std::chrono::minutes(2));
    const auto was = by_id(before), is = by_id(after);
    const std::string front = kind.namespaced ? space + "/" : "";
    const auto verdict = [&](const std::string& name, const std::string& then) {
      const auto one = was.find(front + name), two = is.find(front + then);
      return schema && one != was.end() && two != is.end() ? judged(schema.value(), *one->second, *two->second)
                                                           : Verdict{{}, {"the provider does not report it"}};
    };
    const Verdict control = verdict(trials.control(), trials.control());
    EXPECT_TRUE(control.silent()) << kind.kind << ": " << ::testing::PrintToString(control.changes)
                                  << ::testing::PrintToString(control.unknown);
    Counts n;
    n.outside = trials.outside();
    for (const auto& trial : trials.trials()) count(kind, trial, verdict(trial.before, trial.after), n);
    print(kind.kind, n);
    EXPECT_EQ(n.missed, 0u) << kind.kind;
    EXPECT_LE(n.refused, kind.refused) << kind.kind;
  }

  void count(const LeafKind& kind, const Trial& trial, const Verdict& verdict, Counts& n) {
    const std::string name = kind.kind + " " + trial.leaf.text(), exception = table.excepted(kind, trial.leaf);
    ++n.leaves;
    if (trial.proof) {
      EXPECT_NE(trial.refusal, "") << name << " is not refused, so neither are the others";
    }
    if (!trial.refusal.empty()) {
      ++n.refused;
      report << "refused " << name << ": " << trial.refusal << "\n";
    } else if (!verdict.changes.empty()) {
      ++n.seen;
      n.alone += trial.alone ? 1 : 0;
      if (trial.alone) {
        EXPECT_EQ(exception, "") << name << " is seen, so the table of exceptions is wrong";
      }
      if (!trial.alone) report << "together " << name << "\n";
    } else if (!exception.empty()) {
      ++n.excepted;
    } else {
      ++n.missed;
      report << "missed " << name;
      for (const auto& each : verdict.unknown) report << " (unknown: " << each << ")";
      report << "\n";
    }
  }

  static void print(const std::string& kind, const Counts& n) {
    std::cout << std::left << std::setw(34) << kind << std::right;
    for (const std::size_t each : {n.leaves, n.seen, n.alone, n.excepted, n.refused, n.missed, n.outside})
      std::cout << std::setw(9) << each;
    std::cout << std::endl;
  }

  KubeServer kube;
  LeafTable table;
  std::ostringstream report;  ///< a line for each leaf that was not simply seen
};

TEST_F(K8sLeaves, AChangeOfAnyOfThemIsSeen) {
  const char* only = std::getenv("DRIFTD_LEAVES_OF");
  std::cout << std::left << std::setw(34) << "kind" << std::right;
  for (const char* each : {"leaves", "seen", "alone", "excepted", "refused", "missed", "outside"})
    std::cout << std::setw(9) << each;
  std::cout << std::endl;
  for (const auto& kind : table.kinds())
    if (only == nullptr || kind.kind == only) run(kind);
  std::cout << report.str();
}

}  // namespace
}  // namespace driftd::test
