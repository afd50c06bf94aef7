// SPDX-License-Identifier: Apache-2.0
// What a consumer that was compiled from the RFC's messages alone reads in our bytes.
#include <gmock/gmock.h>

#include "base/digest.hpp"
#include "proto/codec.hpp"
#include "rfc.pb.h"
#include "support/process.hpp"

namespace driftd::test {
namespace {

core::BackendEvent event() {
  core::BackendEvent out;
  out.backend_uid = "uid";
  out.backend_name = "kafka-prod";
  out.backend_type = "kafka";
  out.type = core::ChangeType::credential_rotated;
  out.what = "credentials.rotated";
  out.source = "kubernetes";
  out.old_state =
      core::BackendSnapshot{"kafka-prod", "kafka", "kafka:9092", R"({"a":1})", {{"team", "orders"}}, {"acl"}};
  out.new_state = out.old_state;
  out.changed_fields = {"config.kafka.auth.sasl.password"};
  out.policy = core::Action::automatic;
  out.reconciliation_status = "auto-applied";
  out.metadata = {{"kubernetes_secret", "kafka-credentials"}};
  out.affected_patterns = {"order-consumer"};
  out.resource = core::ResourceId{"secret", "prod/kafka-credentials"};
  return out;
}

rfc::BackendChangeEvent consumed(const core::BackendEvent& from) {
  core::EventStamp stamp;
  stamp.id = "abc-0001";
  stamp.sequence = 7;
  stamp.recorded_ns = 1'700'000'000'000'000'001;
  rfc::BackendChangeEvent out;
  EXPECT_TRUE(out.ParseFromString(proto::encode(from, stamp)));
  return out;
}

TEST(Rfc, ItsConsumerReadsEveryFieldThatItKnows) {
  const auto got = consumed(event());
  EXPECT_EQ(got.event_id(), "abc-0001");
  EXPECT_EQ(got.backend_name(), "kafka-prod");
  EXPECT_EQ(got.change_type(), rfc::BACKEND_CHANGE_TYPE_CREDENTIAL_ROTATED);
  EXPECT_EQ(got.source(), "kubernetes");
  EXPECT_EQ(got.timestamp(), 1'700'000'000);
  EXPECT_EQ(got.old_state().endpoint(), "kafka:9092");
  EXPECT_EQ(got.new_state().config_json(), R"({"a":1})");
  EXPECT_EQ(got.new_state().metadata().at("team"), "orders");
  EXPECT_EQ(got.new_state().capabilities(0), "acl");
  EXPECT_EQ(got.changed_fields(0), "config.kafka.auth.sasl.password");
  EXPECT_EQ(got.policy(), rfc::RECONCILIATION_POLICY_AUTO);
  EXPECT_EQ(got.reconciliation_status(), "auto-applied");
  EXPECT_EQ(got.metadata().at("kubernetes_secret"), "kafka-credentials");
  EXPECT_EQ(got.affected_patterns(0), "order-consumer");
}

TEST(Rfc, OursAreUnknownFieldsThatItPassesOn) {
  const auto got = consumed(event());
  const auto& unknown = got.GetReflection()->GetUnknownFields(got);
  ASSERT_GT(unknown.field_count(), 0);
  for (int i = 0; i < unknown.field_count(); ++i) EXPECT_GE(unknown.field(i).number(), 13);
}

TEST(Rfc, EveryChangeTypeAndPolicyHasTheRfcsNumber) {
  for (int number = 0; number <= 7; ++number) {
    core::BackendEvent one = event();
    one.type = static_cast<core::ChangeType>(number);
    EXPECT_EQ(rfc::BackendChangeType_Name(consumed(one).change_type()),
              "BACKEND_CHANGE_TYPE_" + std::string(core::render(one.type)));
  }
  const std::vector<std::pair<core::Action, int>> policies = {
      {core::Action::automatic, 1}, {core::Action::manual, 2}, {core::Action::ignore, 3}, {core::Action::enforce, 4}};
  for (const auto& [action, number] : policies) {
    core::BackendEvent one = event();
    one.policy = action;
    EXPECT_EQ(consumed(one).policy(), number);
  }
}

TEST(Rfc, TheFrozenFileIsTheOneThatWasFrozen) {
  const std::string text = read_file(std::string(DRIFTD_SOURCE_DIR) + "/tests/compat/rfc.proto");
  EXPECT_EQ(to_hex(sha256(text)), "90723bf299257a8cfe58d874fbb7a25e6b60fdd99f799e840541e72d3570b1be");
}

}  // namespace
}  // namespace driftd::test
