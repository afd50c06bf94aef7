// SPDX-License-Identifier: Apache-2.0
// A key is printed only into a pipe or a file.
#include <gmock/gmock.h>

#include "command_result.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NewKeyCommand : public ::testing::Test {
 protected:
  CommandResult outcome(std::vector<std::string> arguments, bool shown) const {
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
  const CommandResult piped = outcome({"key", "new"}, false);
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out, "key-canary\n");
}

TEST_F(NewKeyCommand, IsNotShownOnATerminalNorInJson) {
  for (const CommandResult& refused :
       {outcome({"key", "new"}, true), outcome({"--output", "json", "key", "new"}, false)}) {
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("a key is not shown"), HasSubstr("--out FILE")));
    EXPECT_THAT(refused.out + refused.err, Not(HasSubstr("canary")));
  }
}

TEST_F(NewKeyCommand, IntoAFileOnlyIdsAreSaid) {
  const CommandResult written = outcome({"key", "new", "--out", "driftd.key"}, true);
  EXPECT_EQ(written.code, 0);
  EXPECT_THAT(written.out,
              AllOf(HasSubstr("wrote driftd.key, mode 0600"), HasSubstr("aa bb"), Not(HasSubstr("canary"))));
}

/// What still opens what was stolen is outcome, or who rotated believes that nothing does.
TEST(KeyRotateCommand, SaysWhatTheFormerKeyStillOpens) {
  const test::TempDir folder;
  const std::string file = folder.write("d.yaml", "backends: []\n");
  core::Value::Object answer{{"file", core::Value("/d/installation.key")}, {"ids", core::Value("aa bb cc")}};
  Hooks hooks;
  hooks.rotate_key = [&answer](const config::Config&, const app::KeyRotation&) {
    return Result<core::Value>(core::Value(answer));
  };
  const CommandResult clean = driftd({"-c", file, "key", "rotate"}, hooks);
  EXPECT_EQ(clean.code, 0) << clean.err;
  EXPECT_THAT(clean.out, AllOf(HasSubstr("rotated /d/installation.key: key ids aa bb cc"),
                               Not(HasSubstr("unused pages")), Not(HasSubstr("these copies"))));
  answer["unswept"] = core::Value("database or disk is full");
  answer["former"] = core::Value(core::Value::Array{core::Value("/d/store.db.before")});
  const CommandResult left = driftd({"-c", file, "key", "rotate"}, hooks);
  EXPECT_EQ(left.code, 0) << left.err;
  EXPECT_THAT(left.out,
              AllOf(HasSubstr("still hold digests under the former key in unused pages: database or disk is full; the "
                              "next start overwrites them"),
                    HasSubstr("the former key still opens these copies"), HasSubstr("  /d/store.db.before\n")));
}

}  // namespace
}  // namespace driftd::cli
