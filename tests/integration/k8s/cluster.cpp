// SPDX-License-Identifier: Apache-2.0
#include "cluster.hpp"

namespace driftd::test {

Collected Cluster::watch(ProviderProbe& probe, const std::string& cursor, std::vector<Step> steps,
                         std::chrono::milliseconds max) {
  std::size_t at = 0;
  bool acted = false;
  const auto enough = [&](const Collected& got) {
    while (at < steps.size()) {
      if (!acted) steps[at].act();
      acted = true;
      if (!steps[at].seen(got)) return false;
      ++at;
      acted = false;
    }
    return true;
  };
  const Collected got = probe.watch(cursor, enough, max);
  EXPECT_EQ(at, steps.size()) << "so many steps were fulfilled; " << render(got);
  return got;
}

std::string Cluster::fresh_namespace() {
  static int last = 0;
  const std::string name = "space-" + std::to_string(++last);
  kube().create_namespace(name);
  return name;
}

const sdk::Record* Cluster::at_version(const Collected& got, const std::string& kind, const std::string& id,
                                       const std::string& version) {
  for (const auto& record : got.records) {
    if (record.kind == kind && record.id == id && record.version == version) return &record;
  }
  return nullptr;
}

std::string Cluster::render(const Collected& got) {
  std::string out = "status " + std::to_string(got.status) + ", " + std::to_string(got.records.size()) + " records\n";
  for (const auto& d : got.diagnostics)
    out += std::to_string(d.code) + " " + d.kind + "/" + d.id + ": " + d.text + " [" + d.right + "]\n";
  return out;
}

}  // namespace driftd::test
