// SPDX-License-Identifier: Apache-2.0
// 100,000 things of 500 bytes each, the same in every refresh: what it takes to make them is little beside what it
// takes to bring them to the agent.
#include <cstdio>
#include <string>

#include "driftd/provider.hpp"

namespace {

using namespace driftd::sdk;

constexpr int kThings = 100'000;

class Still final : public Instance {
 public:
  RefreshResult refresh(Call& call, const Refresh&) override {
    Record record{"thing", ""};
    char name[16];
    for (int i = 0; i < kThings; ++i) {
      std::snprintf(name, sizeof name, "thing-%06d", i);
      record.id = name;
      record.body = R"({"name":")" + record.id + kAttributes;
      if (!call.emit(record)) return {};
    }
    call.complete("thing", kThings);
    return {};
  }
  void read(Call&, std::span<const Identity>) override {}
  Health health(Call&) override { return {DRIFTD_HEALTH_UP, 1, "", "", "still", "1"}; }

 private:
  static constexpr const char* kAttributes =
      R"(","partitions":12,"replication_factor":3,"config":{"cleanup.policy":"delete","compression.type":"producer",)"
      R"("delete.retention.ms":"86400000","file.delete.delay.ms":"60000","flush.messages":"9223372036854775807",)"
      R"("max.message.bytes":"1048588","min.cleanable.dirty.ratio":"0.5","min.insync.replicas":"2",)"
      R"("retention.bytes":"-1","retention.ms":"604800000","segment.bytes":"1073741824","segment.ms":"604800000",)"
      R"("unclean.leader.election.enable":"false"},"owner":"orders"})";
};

std::unique_ptr<Instance> open(Call&, std::string_view, std::string_view) { return std::make_unique<Still>(); }

const Plugin& plugin() {
  static const Plugin kPlugin{
      R"({"id":"still","version":"1.0","types":["still"],"kinds":["thing"]})",
      {{"settings", R"({"type":"object"})"},
       {"thing", R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"a thing",
                     "attributes":{"partitions":{"type":"int"},"replication_factor":{"type":"int"},
                     "config[\"retention.ms\"]":{"type":"duration","unit":"ms"},
                     "password":{"type":"string","class":"credential","sensitive":true}}})"}},
      false,
      &open};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
