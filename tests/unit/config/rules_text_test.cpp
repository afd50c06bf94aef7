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
  return core::render(
      rules_json(rules, {}, [](const std::string& value) { return "m" + std::to_string(value.size()); }));
}

/// What is put back, and what nobody may approve, changes with the value. It may be a secret.
TEST(RulesText, AnotherExpectedValueIsAnotherTextThatTellsNeither) {
  const std::string one = text(expecting("\"hunter2\"")), other = text(expecting("\"hunter20\""));
  EXPECT_NE(one, other);
  EXPECT_THAT(one, testing::Not(testing::HasSubstr("hunter")));
  EXPECT_THAT(one, testing::HasSubstr(R"("paths":["maxmemory"],"values":["m9"])"));
}

TEST(RulesText, WhatMayBePutBackIsNamedOnceBothAllowIt) {
  core::EnforceSettings settings;
  settings.owner = "default/edge";
  const auto shown = [&] { return core::render(rules_json({}, settings, [](const std::string&) { return ""; })); };
  settings.allowed_globally = true;
  EXPECT_THAT(shown(), testing::Not(testing::HasSubstr("enforce")));
  settings.allowed_here = true;
  settings.windows.push_back(*core::parse_window("Sat 02:00-04:00"));
  EXPECT_THAT(shown(), testing::HasSubstr(R"("enforce":{"minimum_age":"3600s","owner":"default/edge","per_cycle":5,)"
                                          R"("per_hour":20,"windows":["Sat 02:00-04:00"]})"));
}

}  // namespace
}  // namespace driftd::config
