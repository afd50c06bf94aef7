// SPDX-License-Identifier: Apache-2.0
// A key is printed into a pipe and nowhere else.
#include <gmock/gmock.h>

#include "said.hpp"

namespace driftd::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NewKeyCommand : public ::testing::Test {
 protected:
  Said said(std::vector<std::string> arguments, bool shown) const {
    Hooks hooks;
    hooks.new_key = [](const std::string& out) {
      core::Value::Object answer{{"ids", core::Value("aa bb")}, {"file", core::Value(out)}};
      if (out.empty()) answer["text"] = core::Value("key-canary\n");
      return Result<core::Value>(core::Value(std::move(answer)));
    };
    std::ostringstream out, err;
    const int code = run(std::move(arguments), {out, err, false, nullptr, shown}, hooks);
    return {code, out.str(), err.str()};
  }
};

TEST_F(NewKeyCommand, GoesToAPipeAsItIs) {
  const Said piped = said({"key", "new"}, false);
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out, "key-canary\n");
}

TEST_F(NewKeyCommand, IsNotShownOnATerminalNorInJson) {
  for (const Said& refused : {said({"key", "new"}, true), said({"--output", "json", "key", "new"}, false)}) {
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("a key is not shown"), HasSubstr("--out FILE")));
    EXPECT_THAT(refused.out + refused.err, Not(HasSubstr("canary")));
  }
}

TEST_F(NewKeyCommand, IntoAFileOnlyIdsAreSaid) {
  const Said written = said({"key", "new", "--out", "driftd.key"}, true);
  EXPECT_EQ(written.code, 0);
  EXPECT_THAT(written.out, AllOf(HasSubstr("wrote driftd.key, mode 0600"), HasSubstr("aa bb"), Not(HasSubstr("canary"))));
}

}  // namespace
}  // namespace driftd::cli
