// SPDX-License-Identifier: Apache-2.0
// A state is never written: what a person would run is named, in a dry run as in a real one.
#include <gmock/gmock.h>

#include "support/process.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

constexpr const char* kState = R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc",
  "outputs":{"url":{"value":"a","type":"string"}},"resources":[
  {"mode":"managed","type":"kafka_topic","name":"orders","provider":"provider[\"registry.terraform.io/mongey/kafka\"]",
   "instances":[{"index_key":"eu","attributes":{"partitions":3}}]},
  {"mode":"managed","type":"kafka_topic","name":"bills","provider":"provider[\"registry.opentofu.org/mongey/kafka\"]",
   "instances":[{"attributes":{"partitions":3}}]}]})";

class TerraformApply : public testing::Test {
 protected:
  AppliedCall apply(const std::string& kind, const std::string& id, const sdk::Change& change, bool dry = false,
                    const std::string& version = "7") {
    return probe_.apply({dry, {kind, id}, version, "key", {change}});
  }
  TempDir dir_;
  std::string path_ = dir_.write("terraform.tfstate", kState);
  ProviderProbe probe_{"providers/terraform.so", {{"path", path_}}};
};

TEST_F(TerraformApply, CommandOfAPersonIsNamedAndTheStateStays) {
  for (const bool dry : {true, false}) {
    const auto got = apply("instance", "kafka_topic.orders[\"eu\"]", {0, "partitions", "3", "6"}, dry);
    EXPECT_EQ(got.status, DRIFTD_OK) << got.reason();
    EXPECT_EQ(got.outcome.outcome, std::uint32_t{DRIFTD_APPLY_FAILED});
    EXPECT_FALSE(got.outcome.changed);
    EXPECT_TRUE(got.outcome.commands.empty()) << "driftd runs nothing";
    EXPECT_EQ(got.outcome.details.at("instead"), "terraform apply -target='kafka_topic.orders[\"eu\"]'");
  }
  EXPECT_EQ(read_file(path_), kState);
  EXPECT_EQ(apply("instance", "kafka_topic.bills", {0, "partitions", "3", "6"}).outcome.details.at("instead"),
            "tofu apply -target=kafka_topic.bills");
  EXPECT_THAT(apply("output", "url", {0, "value", "\"a\"", "\"b\""}).outcome.text, HasSubstr("neither runs Terraform"));
  EXPECT_THAT(apply("state", "state", {0, "terraform_version", "\"1.9.0\"", "\"1.8.0\""}).outcome.text,
              HasSubstr("cannot be set"));
}

TEST_F(TerraformApply, GoneChangedAndThereAlreadyAreToldApart) {
  EXPECT_EQ(apply("instance", "kafka_topic.gone", {0, "partitions", "3", "6"}).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(apply("output", "gone", {0, "value", "1", "2"}).status, DRIFTD_NOT_FOUND);
  EXPECT_EQ(apply("instance", "kafka_topic.bills", {0, "partitions", "3", "6"}, false, "6").status, DRIFTD_CONFLICT);
  EXPECT_EQ(apply("instance", "kafka_topic.bills", {0, "partitions", "4", "6"}).status, DRIFTD_CONFLICT);
  EXPECT_EQ(apply("quota", "x", {0, "a", "1", "2"}).status, DRIFTD_INVALID);
  const auto there = apply("instance", "kafka_topic.bills", {0, "partitions", "6", "3"});
  EXPECT_EQ(there.outcome.outcome, std::uint32_t{DRIFTD_APPLY_SUCCESS});
  EXPECT_FALSE(there.outcome.changed);
}

}  // namespace
}  // namespace driftd::test
