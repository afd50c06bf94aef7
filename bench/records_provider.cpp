// SPDX-License-Identifier: Apache-2.0
// Records of about 1 KB, the same in every refresh: `{"count":100000}`.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "driftd/provider.hpp"

namespace {

using namespace driftd::sdk;

constexpr const char* kSchema =
    R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"a thing",)"
    R"("attributes":{"partitions":{"type":"int"},"config[\"retention.ms\"]":{"type":"duration","unit":"ms"},)"
    R"("tags.*":{"type":"string"},"groups":{"collection":"set"},)"
    R"("password":{"type":"string","class":"credential","sensitive":true}}})";

constexpr const char* kAttributes =
    R"(","partitions":12,"replication_factor":3,"config":{"cleanup.policy":"delete","compression.type":"producer",)"
    R"("delete.retention.ms":"86400000","file.delete.delay.ms":"60000","flush.messages":"9223372036854775807",)"
    R"("max.message.bytes":"1048588","min.cleanable.dirty.ratio":"0.5","min.insync.replicas":"2",)"
    R"("retention.bytes":"-1","retention.ms":"604800000","segment.bytes":"1073741824","segment.ms":"604800000",)"
    R"("unclean.leader.election.enable":"false"},"owner":"orders","groups":["a-team","b-team","c-team"],)"
    R"("tags":{"env":"production","team":"orders","cost-center":"4711","managed-by":"terraform"},)"
    R"("network":[{"interface":"eth0","address":"10.0.0.1","mtu":1500},{"interface":"eth1","address":"10.0.0.2",)"
    R"("mtu":9000}],"description":"Holds what was ordered until it is paid, and is read by billing, shipping and the )"
    R"(warehouse. Ask the team before you change how long it keeps what it holds; see the runbook.","limits":)"
    R"({"producer_byte_rate":1048576,"consumer_byte_rate":2097152,"request_percentage":25.5},"enabled":true})";

class Records final : public Instance {
 public:
  explicit Records(std::string_view settings) {
    const auto at = settings.find_first_of("0123456789");
    if (at != settings.npos) std::from_chars(settings.data() + at, settings.data() + settings.size(), count_);
  }
  RefreshResult refresh(Call& call, const Refresh&) override {
    Record record{"thing", ""};
    char name[24];
    for (int i = 0; i < count_; ++i) {
      std::snprintf(name, sizeof name, "thing-%07d", i);
      record.id = name;
      record.body.assign(R"({"name":")").append(name).append(kAttributes);
      if (!call.emit(record)) return {};
    }
    call.complete("thing", static_cast<std::uint64_t>(count_));
    return {};
  }
  void read(Call&, std::span<const Identity>) override {}
  Health health(Call&) override { return {DRIFTD_HEALTH_UP, 1, "", "", "records", "1"}; }

 private:
  int count_ = 0;
};

std::unique_ptr<Instance> open(Call&, std::string_view, std::string_view settings) {
  return std::make_unique<Records>(settings);
}

const Plugin& plugin() {
  static const Plugin kPlugin{
      R"({"id":"records","version":"1.0","types":["records"],"kinds":["thing"]})",
      {{"settings", R"({"type":"object","properties":{"count":{"type":"integer"}}})"}, {"thing", kSchema}},
      false,
      &open};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
