// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include "cli/fields.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace driftd::cli {
namespace {

TEST(Table, NoCellIsObeyedByATerminal) {
  Table table({"ID", "TEXT"});
  table.add({"a\x1b[2J",
             "b\nc \xc2\x9b"
             "31m \xe2\x80\xae \xff caf\xc3\xa9"});
  std::ostringstream out;
  table.print(out, false);
  EXPECT_EQ(out.str(), "ID        TEXT\na\\x1b[2J  b\\x0ac \\u009b31m \\u202e \\xff caf\xc3\xa9\n");
}

TEST(JsonText, IsTheSameJsonAndNoTerminalObeysIt) {
  const core::Value value =
      core::Value::Object{{"a\xe2\x80\xae", core::Value("\xc2\x9b"
                                                        "31m \x7f \x1b \xe2\x81\xa6 caf\xc3\xa9")}};
  const std::string text = json_text(value);
  EXPECT_EQ(text, R"({"a\u202e":"\u009b31m \u007f \u001b \u2066 caf)"
                  "\xc3\xa9\"}");
  EXPECT_EQ(core::parse(text), value);
}

}  // namespace
}  // namespace driftd::cli
