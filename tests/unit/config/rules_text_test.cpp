// SPDX-License-Identifier: Apache-2.0
// Rules as the audit log names them.
#include "config/rules_text.hpp"

#include <gmock/gmock.h>

namespace driftd::config {
namespace {

core::Rules expecting(const std::string& json) {
  core::Expectation one;
  one.attributes.emplace_back(*core::Path::parse("maxmemory"), *core::parse(json));
  core::Rules out;
  out.expect.push_back(one);
  return out;
}

std::string text(const core::Rules& rules) {
  return core::render(rules_json(rules, [](const std::string& value) { return "m" + std::to_string(value.size()); }));
}

/// What is put back, and what nobody may approve, changes with the value. It may be a secret.
TEST(RulesText, AnotherExpectedValueIsAnotherTextThatTellsNeither) {
  const std::string one = text(expecting("\"hunter2\"")), other = text(expecting("\"hunter20\""));
  EXPECT_NE(one, other);
  EXPECT_THAT(one, testing::Not(testing::HasSubstr("hunter")));
  EXPECT_THAT(one, testing::HasSubstr(R"("paths":["maxmemory"],"values":["m9"])"));
}

}  // namespace
}  // namespace driftd::config
