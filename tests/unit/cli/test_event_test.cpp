// SPDX-License-Identifier: Apache-2.0
// What `driftd test` sends has the fields of a real notification.
#include "cli/test_event.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "proto/codec.hpp"

namespace driftd::cli {
namespace {

using nlohmann::json;

TEST(SampleNotification, EachDriftSaysWhatMayBeDecided) {
  for (const char* kind : {"opened", "changed", "reminder", "escalation"}) {
    const json event = json::parse(*proto::cloudevent_json(sample_notification(kind, 1'000'000'000)));
    const json drifts = json::parse(event.at("data").at("details").at("drifts").get<std::string>());
    ASSERT_FALSE(drifts.empty());
    for (const auto& drift : drifts) EXPECT_EQ(drift.at("actions"), "APPROVE REJECT IGNORE") << kind << drift;
  }
}

}  // namespace
}  // namespace driftd::cli
