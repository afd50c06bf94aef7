// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace driftd::cli {
namespace {

TEST(Table, NoCellIsObeyedByATerminal) {
  Table table({"ID", "TEXT"});
  table.add({"a\x1b[2J", "b\nc \xc2\x9b" "31m \xe2\x80\xae \xff caf\xc3\xa9"});
  std::ostringstream out;
  table.print(out, false);
  EXPECT_EQ(out.str(), "ID        TEXT\na\\x1b[2J  b\\x0ac \\u009b31m \\u202e \\xff caf\xc3\xa9\n");
}

}  // namespace
}  // namespace driftd::cli
