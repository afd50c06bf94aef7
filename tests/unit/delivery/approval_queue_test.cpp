// SPDX-License-Identifier: Apache-2.0
// What the queue shows for a drift that waits for a decision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/value/value.hpp"
#include "delivery/approval_queue.hpp"

namespace driftd::delivery {
namespace {

using testing::HasSubstr;

core::DriftRow row_of(const std::string& value) {
  core::DriftRow out;
  out.backend = "db";
  out.drift.id = "d-1";
  out.drift.resource = {"setting", "motd"};
  out.drift.changes = {{"value", core::ChangeClass::config, "\"\"", core::render(core::Value(value)), false}};
  return out;
}

bool is_json(const std::string& text) { return core::parse(core::render(core::Value(text))).has_value(); }

/// A value may be cut in the middle of a character by whoever writes it; a list with one item that is not text is not
/// valid JSON as a whole.
TEST(Notification, ValueIsNotCutInsideOfACharacter) {
  for (const std::string one : {"\u00e9", "\u20ac", "\U0001f512"}) {
    for (std::size_t before = 0; before < 8; ++before) {
      std::string value(before, 'x');
      for (int i = 0; i < 100; ++i) value += one;
      const Notification shown = make_notification(row_of(value), 0);
      EXPECT_TRUE(is_json(shown.message)) << before << " before " << one;
      EXPECT_THAT(shown.message, HasSubstr("…"));
      EXPECT_LT(shown.message.size(), 200u);
    }
  }
}

/// If old and new value look the same in the queue, the user approves something invisible.
TEST(Notification, LongValuesAreCutWhereTheyAreTheSame) {
  const std::string same(500, 'x');
  core::DriftRow row = row_of(same + "allow-all" + same);
  row.drift.changes[0].old_value = "\"" + same + "allow-few" + same + "\"";
  const std::string shown = make_notification(row, 0).message;
  EXPECT_THAT(shown, testing::AllOf(HasSubstr("allow-few"), HasSubstr("allow-all")));
  EXPECT_LT(shown.size(), 300u);
}

TEST(Notification, ShowsNothingThatIsWithheld) {
  core::DriftRow row = row_of("x");
  const std::string digest = R"({"$hmac":"0a0b0c0d:1:)" + std::string(64, 'a') + R"("})";
  row.drift.changes = {{"password", core::ChangeClass::credential, digest, digest, true},
                       {"whole", core::ChangeClass::config, std::nullopt, R"({"in":)" + digest + "}", false}};
  const std::string shown = make_notification(row, 0).message;
  EXPECT_THAT(shown, testing::Not(HasSubstr("aaaa")));
  EXPECT_THAT(shown, HasSubstr("Field setting/motd:password changed from [REDACTED] to [REDACTED]"));
  EXPECT_THAT(shown, HasSubstr(R"(Field setting/motd:whole changed from (absent) to {"in":"[REDACTED]"})"));
}

}  // namespace
}  // namespace driftd::delivery
