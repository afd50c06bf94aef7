// SPDX-License-Identifier: Apache-2.0
#include "terraform/mapping.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace driftd::terraform {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string state_with(const std::string& instances, const std::string& outputs = "{}") {
  return R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":)" + outputs +
         R"(,"resources":[{"mode":"managed","type":"kafka_topic","name":"orders","module":"module.bus","provider":"p",)" +
         R"("instances":[)" + instances + "]}]}";
}

const sdk::Record& record(const State& state, const std::string& kind) {
  for (const auto& r : state.records) {
    if (r.kind == kind) return r;
  }
  throw std::runtime_error("no " + kind);
}

void expect_failure(const std::string& text, driftd_status code, const std::string& part) {
  try {
    parse_state(text, {}, -1);
    FAIL() << "expected a failure for " << text.substr(0, 40);
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, code);
    EXPECT_THAT(failure.what(), HasSubstr(part));
  }
}

TEST(TerraformMapping, NumbersKeepTheirTokens) {
  const auto state = parse_state(
      state_with(R"({"attributes":{"big":12345678901234567890123,"dec":1.10,"exp":1e3,"max":9007199254740993}})"), {}, -1);
  EXPECT_EQ(record(state, "instance").body,
            R"({"big":12345678901234567890123,"dec":1.10,"exp":1e3,"max":9007199254740993})");
}

TEST(TerraformMapping, AddressesAreTerraformsOwn) {
  const auto state = parse_state(state_with(R"({"index_key":"a b","attributes":{}},{"index_key":0,"attributes":{}},
      {"deposed":"00ff","attributes":{}})"), {}, -1);
  std::vector<std::string> ids;
  for (const auto& r : state.records) {
    if (r.kind == "instance") ids.push_back(r.id);
  }
  EXPECT_THAT(ids, ElementsAre(R"(module.bus.kafka_topic.orders["a b"])", "module.bus.kafka_topic.orders[0]",
                               "module.bus.kafka_topic.orders (deposed 00ff)"));
}

TEST(TerraformMapping, MarkedAndWellKnownAttributesAreSensitive) {
  const auto state = parse_state(state_with(R"({"attributes":{"user":"u","master_password":"x","nested":[{"token":"t"}],
      "map":{"a.b":"v"}},"sensitive_attributes":[[{"type":"get_attr","value":"map"},
      {"type":"index","value":{"value":"a.b","type":"string"}}]]})"), {}, -1);
  EXPECT_THAT(record(state, "instance").sensitive,
              UnorderedElementsAre(R"(map["a.b"])", "master_password", "nested[0].token"));
}

TEST(TerraformMapping, SettingsMayNameMoreSecrets) {
  Settings settings;
  settings.sensitive = {"pin*"};
  const auto state = parse_state(state_with(R"({"attributes":{"pin_code":"1","name":"n"}})"), settings, -1);
  EXPECT_THAT(record(state, "instance").sensitive, ElementsAre("pin_code"));
}

TEST(TerraformMapping, SensitiveOutputIsSensitiveAndEveryRecordCarriesSerialAndLineage) {
  const auto state = parse_state(state_with("", R"({"db":{"value":"x","type":"string","sensitive":true}})"), {}, -1);
  EXPECT_THAT(record(state, "output").sensitive, ElementsAre("value"));
  for (const auto& r : state.records) {
    EXPECT_EQ(r.metadata.at("serial"), "7");
    EXPECT_EQ(r.metadata.at("lineage"), "abc");
    EXPECT_EQ(r.origin, "terraform-state");
  }
}

TEST(TerraformMapping, BadFilesAreNamedForWhatTheyAre) {
  const std::string good = state_with(R"({"attributes":{}})");
  expect_failure("", DRIFTD_CORRUPT, "empty");
  expect_failure(" \n", DRIFTD_CORRUPT, "empty");
  expect_failure(good.substr(0, good.size() / 2), DRIFTD_CORRUPT, "line 1, column");
  expect_failure("not json", DRIFTD_CORRUPT, "no JSON");
  expect_failure("[]", DRIFTD_CORRUPT, "object");
  expect_failure(R"({"version":5,"resources":[]})", DRIFTD_UNSUPPORTED, "version 5");
  expect_failure(R"({"serial":1,"lineage":"x","encrypted_data":"AAAA","encryption_version":"v0"})", DRIFTD_UNSUPPORTED,
                 "encrypted");
  expect_failure(R"({"version":4,"serial":1,"resources":[]})", DRIFTD_CORRUPT, "lineage");
  expect_failure(R"({"version":4,"serial":1,"lineage":"x"})", DRIFTD_CORRUPT, "resources");
}

}  // namespace
}  // namespace driftd::terraform
