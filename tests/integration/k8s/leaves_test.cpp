// SPDX-License-Identifier: Apache-2.0
// Every field of every kind, as the API server itself documents it: each is changed on a real object, and the change
// must be seen under the packaged schema, unless the provider's table of exceptions says why it need not be.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "cluster.hpp"
#include "judged.hpp"
#include "leaf_trials.hpp"

namespace driftd::test {
namespace {

struct Counts {
  std::size_t leaves = 0, seen = 0, alone = 0, comes = 0, goes = 0, excepted = 0, refused = 0, missed = 0, outside = 0;
};

const std::set<std::string> kWorkloads = {"deployment", "stateful_set", "daemon_set"}, kJobs = {"cron_job", "job"},
                            kCustom = {"gateway", "http_route", "prism_backend", "object"};

/// Refreshes. Throws if that fails, because every object would seem to be missing.
Collected refreshed(ProviderProbe& k8s) {
  Collected out = k8s.refresh({}, std::chrono::minutes(2));
  if (out.status == DRIFTD_OK) return out;
  throw std::runtime_error("the refresh failed with " + std::to_string(out.status) + ": " +
                           (out.diagnostics.empty() ? "no diagnostic" : out.diagnostics[0].text));
}

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
    settings["objects"] = json::array({{{"group", "leaf.example"}, {"kind", "Thing"}}});
    return ProviderProbe("providers/k8s.so", settings);
  }

  /// Changes each leaf of the kind and judges what the provider says before and after.
  void run(const LeafKind& kind) {
    const std::string space = "of-" + std::to_string(&kind - table.kinds().data());
    kube.create_namespace(space);
    ProviderProbe k8s = probe_of(kind, space);
    const auto schema = core::KindSchema::parse(k8s.schema(kind.kind));
    if (!schema) ADD_FAILURE() << kind.kind << ": " << schema.error().message;
    LeafTrials trials(kube, table, kind, space, LeafTrials::What::changes);
    trials.create();
    const Collected before = refreshed(k8s);
    trials.change();
    const Collected after = refreshed(k8s);
    trials.reset();
    const Collected last = refreshed(k8s);
    const auto was = by_id(before), is = by_id(after), then = by_id(last);
    const std::string front = kind.id_front(space);
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
    for (const auto& trial : trials.trials()) {
      count(kind, trial, verdict(trial.before, trial.after), n);
      if (!trial.reset || !schema || !LeafTable::excepted(kind, trial.leaf).empty()) continue;
      const sdk::Record &with = *is.at(front + trial.after), &without = *then.at(front + trial.after);
      count_presence(kind, trial, judged(schema.value(), without, with), judged(schema.value(), with, without), n);
    }
    print(kind.kind, n);
    EXPECT_EQ(n.missed, 0u) << kind.kind;
    EXPECT_LE(n.refused, kind.refused) << kind.kind;
  }

  /// Makes each place of the kind empty, then takes it away, where the API server keeps these apart.
  void run_empties(const LeafKind& kind) {
    const std::string space = "empty-" + std::to_string(&kind - table.kinds().data());
    kube.create_namespace(space);
    ProviderProbe k8s = probe_of(kind, space);
    const auto schema = core::KindSchema::parse(k8s.schema(kind.kind)).value();
    LeafTrials trials(kube, table, kind, space, LeafTrials::What::empties);
    trials.create();
    const Collected before = refreshed(k8s);
    trials.change();
    const Collected after = refreshed(k8s);
    const auto was = by_id(before), is = by_id(after);
    const ApiTypes types(kube.get("/openapi/v3/" + kind.document));
    std::set<std::string> untried = LeafTable::hollow_exceptions(kind);
    std::size_t seen = 0, hollow = 0, same = 0, missed = 0;
    for (const auto& trial : trials.trials()) {
      if (!trial.refusal.empty()) {
        ++same;
        continue;
      }
      const std::string front = kind.id_front(space), why = table.hollow(kind, trial.leaf);
      const sdk::Record &empty = *was.at(front + trial.before), &without = *is.at(front + trial.after);
      const Verdict going = judged(schema, empty, without), coming = judged(schema, without, empty);
      if (const std::string path = LeafTable::hollow_exception(kind, trial.leaf); !path.empty()) {
        ++hollow;
        untried.erase(path);
        EXPECT_TRUE(going.silent() && coming.silent()) << kind.kind << " " << trial.leaf.text();
        EXPECT_EQ(types.smallest(trial.leaf.types.back(), {}), json::object()) << path << " has fields that it needs";
      } else if (!going.changes.empty() && !coming.changes.empty()) {
        ++seen;
      } else if (!why.empty() || LeafTable::filled_in(kind, trial.leaf)) {
        ++hollow;
      } else {
        ++missed;
        report << "missed " << kind.kind << " " << trial.leaf.text() << " (" << trial.leaf.form << ")\n";
      }
    }
    std::cout << std::left << std::setw(34) << kind.kind << std::right;
    for (const std::size_t each : {seen, hollow, same, missed}) std::cout << std::setw(9) << each;
    std::cout << std::endl;
    EXPECT_EQ(missed, 0u) << kind.kind;
    EXPECT_EQ(untried, std::set<std::string>()) << kind.kind << ": the server does not tell these from nothing";
  }

  static void head(const std::vector<const char*>& columns) {
    std::cout << std::left << std::setw(34) << "kind" << std::right;
    for (const char* each : columns) std::cout << std::setw(9) << each;
    std::cout << std::endl;
  }
  void changes_of(const std::set<std::string>& kinds) {
    head({"leaves", "seen", "alone", "comes", "goes", "excepted", "refused", "missed", "outside"});
    for (const auto& kind : table.kinds())
      if (kinds.count(kind.kind) > 0) run(kind);
    std::cout << report.str();
  }
  void empties_of(const std::set<std::string>& kinds) {
    head({"seen", "hollow", "same", "missed"});
    for (const auto& kind : table.kinds())
      if (kinds.count(kind.kind) > 0) run_empties(kind);
    std::cout << report.str();
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

  void count_presence(const LeafKind& kind, const Trial& trial, const Verdict& coming, const Verdict& going,
                      Counts& n) {
    n.comes += coming.changes.empty() ? 0 : 1;
    n.goes += going.changes.empty() ? 0 : 1;
    const bool first = LeafTable::filled_in(kind, trial.leaf);
    if ((coming.changes.empty() && !first) || going.changes.empty()) {
      ++n.missed;
      report << "missed " << kind.kind << " " << trial.leaf.text()
             << (going.changes.empty() ? ": that it is gone" : ": that it is there") << "\n";
    }
  }

  static void print(const std::string& kind, const Counts& n) {
    std::cout << std::left << std::setw(34) << kind << std::right;
    for (const std::size_t each :
         {n.leaves, n.seen, n.alone, n.comes, n.goes, n.excepted, n.refused, n.missed, n.outside})
      std::cout << std::setw(9) << each;
    std::cout << std::endl;
  }

  /// Makes the API server serve the kinds that it does not have itself.
  void install_custom() const {
    const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (const auto& each : table.definitions()) kube.create(definitions, each);
    const Output crds =
        test::run({DRIFTD_SOURCE_DIR "/tests/servers/kube/gateway/crds.sh"}, {}, std::chrono::minutes(30));
    ASSERT_EQ(crds.code, 0) << crds.err;
    const std::string folder = crds.out.substr(0, crds.out.find('\n')) + "/gateway.networking.k8s.io_";
    for (const char* each : {"gateways", "httproutes"}) kube.apply(read_file(folder + each + ".yaml"));
    for (const auto& kind : table.kinds()) {
      if (kCustom.count(kind.kind) == 0) continue;
      const auto served = [&] {
        return kube.request("GET", "/" + kind.document + "/" + kind.plural).status == 200 &&
               kube.request("GET", "/openapi/v3/" + kind.document).text.find(kind.type) != std::string::npos;
      };
      ASSERT_TRUE(eventually(served)) << kind.kind;
    }
  }

  KubeServer kube;
  LeafTable table;
  std::ostringstream report;  ///< a line for each leaf that was not simply seen
};

std::set<std::string> others(const LeafTable& table) {
  std::set<std::string> out;
  for (const auto& kind : table.kinds())
    if (kWorkloads.count(kind.kind) + kJobs.count(kind.kind) + kCustom.count(kind.kind) == 0) out.insert(kind.kind);
  return out;
}

TEST_F(K8sLeaves, AChangeOfAnyOfThemIsSeen) { changes_of(others(table)); }
TEST_F(K8sLeaves, AChangeOfAnyLeafOfAWorkloadIsSeen) { changes_of(kWorkloads); }
TEST_F(K8sLeaves, AChangeOfAnyLeafOfAJobIsSeen) { changes_of(kJobs); }
TEST_F(K8sLeaves, AChangeOfAnyLeafOfACustomKindIsSeen) {
  install_custom();
  changes_of(kCustom);
}

/// `podSelector: {}` is every pod and no `podSelector` is none: where the API server keeps the two apart, they are two.
TEST_F(K8sLeaves, AnEmptyValueIsNotNothing) { empties_of(others(table)); }
TEST_F(K8sLeaves, AnEmptyValueOfAWorkloadIsNotNothing) { empties_of(kWorkloads); }
TEST_F(K8sLeaves, AnEmptyValueOfAJobIsNotNothing) { empties_of(kJobs); }
TEST_F(K8sLeaves, AnEmptyValueOfACustomKindIsNotNothing) {
  install_custom();
  empties_of(kCustom);
}

/// A kind that the provider has and leaves.json does not is a kind of which nothing is proven here.
TEST_F(K8sLeaves, EveryKindOfTheProviderIsTried) {
  // These have no type of their own in the API server's documents: real_test.cpp, backends_test.cpp.
  std::set<std::string> known = {"helm_release", "registration"};
  for (const auto& kind : table.kinds()) known.insert(kind.kind);
  const ProviderProbe k8s("providers/k8s.so", kube.settings({"default"}));
  const json described = k8s.describe();
  for (const auto& kind : described.at("kinds")) EXPECT_EQ(known.count(kind), 1u) << kind;
}

}  // namespace
}  // namespace driftd::test
