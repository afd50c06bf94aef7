// SPDX-License-Identifier: Apache-2.0
// `driftd audit export`, and `driftd audit verify` of what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fstream>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "core/audit_text.hpp"
#include "support/process.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::cli {
namespace {

using testing::HasSubstr;

class AuditExport : public testing::Test {
 protected:
  AuditExport() {
    std::string before;
    for (int i = 1; i <= 4; ++i) {
      core::AuditRow row;
      row.id = i;
      row.at_ns = 1'760'000'000'000'000'000 + i * 1'000'000'000LL;
      row.actor = "kim";
      row.verb = "approved";
      row.subject = "d-" + std::to_string(i);
      row.changes = R"([{"new":"2","old":"1","path":"a"}])";
      row.hash = core::chain_hash(before, i, row);
      before = row.hash;
      agent.reader()->audit_log.push_back(row);
    }
  }
  CommandResult asked(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", agent.socket()});
    return driftd(std::move(arguments));
  }
  /// Verifies a file with this text.
  CommandResult verified(const std::string& text, std::vector<std::string> more = {}) {
    std::ofstream(dir.file("export.jsonl"), std::ios::binary) << text;
    more.insert(more.begin(), {"audit", "verify", dir.file("export.jsonl")});
    return driftd(std::move(more));
  }
  std::string anchor_of(std::size_t line) {
    return std::to_string(line) + ":" + agent.reader()->audit_log[line - 1].hash;
  }

  test::FakeAgent agent;
  test::TempDir dir;
};

/// Splits into lines that keep their end.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

TEST_F(AuditExport, TheTableNamesOnceWhatSomebodyTypedOnThePageOfALink) {
  const auto who = [&](const std::string& actor, const std::string& claimed) {
    agent.reader()->last_lines = {agent.reader()->audit_log.front()};
    agent.reader()->last_lines[0].actor = actor;
    agent.reader()->last_lines[0].caller.claimed = claimed;
    return asked({"audit"}).out;
  };
  const std::string linked = who("link of notification 7, sent to chat (typed: Bob)", "typed:Bob");
  EXPECT_THAT(linked, HasSubstr("link of notification 7, sent to chat (typed: Bob)"));
  EXPECT_THAT(linked, testing::Not(HasSubstr("claims")));
  EXPECT_THAT(who("root", "SUDO_USER:kim"), HasSubstr("root (claims SUDO_USER:kim)"));
  EXPECT_THAT(who("link of notification 7, sent to chat", "typed:Bob"), HasSubstr("claims typed:Bob"));
}

TEST_F(AuditExport, AnExportIsVerifiedAndAnyChangeOfItIsFound) {
  const CommandResult exported = asked({"audit", "export"});
  ASSERT_EQ(exported.code, kOk) << exported.err;
  const auto lines = lines_of(exported.out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(verified(exported.out).code, kOk);
  EXPECT_EQ(verified(exported.out, {"--anchor", anchor_of(4)}).code, kOk);
  EXPECT_EQ(verified(lines[0] + lines[2] + lines[3]).code, kFinding) << "a missing line";
  EXPECT_EQ(verified(lines[0] + lines[2] + lines[1] + lines[3]).code, kFinding) << "two lines swapped";
  EXPECT_EQ(verified(lines[0] + lines[1] + lines[1] + lines[2] + lines[3]).code, kFinding) << "a line twice";
  const std::string cut = lines[0] + lines[1] + lines[2];
  EXPECT_EQ(verified(cut).code, kOk) << "the chain alone cannot show it";
  EXPECT_THAT(verified(cut, {"--anchor", anchor_of(4)}).out, HasSubstr("lines at its end were removed"));
  for (std::size_t at = 0; at + 1 < lines[1].size(); ++at) {
    std::string other = lines[1];
    other[at] = other[at] == '1' ? '2' : '1';
    EXPECT_EQ(verified(lines[0] + other + lines[2] + lines[3]).code, kFinding) << other;
  }
}

TEST_F(AuditExport, APartOfTheLogIsVerifiedFromItsFirstLine) {
  const CommandResult part = asked({"audit", "export", "--after", "2"});
  EXPECT_EQ(lines_of(part.out).size(), 2U);
  EXPECT_EQ(verified(part.out).code, kOk);
  EXPECT_EQ(verified(part.out, {"--anchor", anchor_of(3)}).code, kOk);
  EXPECT_EQ(verified(part.out, {"--anchor", "3:" + std::string(64, 'a')}).code, kFinding);
  EXPECT_THAT(verified(part.out, {"--anchor", anchor_of(1)}).out, HasSubstr("older than the checked lines"));
}

TEST_F(AuditExport, OtherFormatsAndTheBeginning) {
  const CommandResult cef = asked({"audit", "export", "--format", "cef", "--since", "2025-10-09T08:53:23Z"});
  EXPECT_EQ(lines_of(cef.out).size(), 2U) << cef.out << cef.err;
  EXPECT_THAT(cef.out, testing::StartsWith("CEF:0|driftd|driftd|"));
  const CommandResult syslog = asked({"audit", "export", "--format", "syslog"});
  EXPECT_EQ(lines_of(syslog.out).size(), 4U);
  EXPECT_THAT(syslog.out, testing::StartsWith("<109>1 2025-10-09T08:53:21.000000Z "));
  EXPECT_EQ(asked({"audit", "export", "--format", "xml"}).code, kUsage);
  EXPECT_EQ(asked({"audit", "export", "--since", "yesterday"}).code, kUsage);
}

TEST_F(AuditExport, ADestinationIsCheckedBeforeAnythingIsAsked) {
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"audit", "export"});
    const CommandResult out = asked(std::move(more));
    EXPECT_EQ(out.code, kUsage) << out.out;
    return out.err;
  };
  EXPECT_THAT(refused({"--to", "tls://logs:6514"}), HasSubstr("expected --format syslog, found jsonl"));
  for (const char* url :
       {"logs", "tcp://logs:1", "tls://", "tls://:6514", "tls://a:b", "tls://a:70000", "tls://[::1", "tls://u@a:1"})
    EXPECT_THAT(refused({"--format", "syslog", "--to", url}), HasSubstr("expected tls://HOST")) << url;
  EXPECT_THAT(refused({"--state", dir.file("s")}), HasSubstr("need --to"));
  EXPECT_THAT(refused({"--format", "syslog", "--to", "tls://a", "--cert", "x"}), HasSubstr("both of --cert and --key"));
  EXPECT_THAT(refused({"--format", "syslog", "--to", "tls://127.0.0.1:1", "--state", dir.path().string()}),
              HasSubstr("--state"));
  const CommandResult nobody = asked({"audit", "export", "--format", "syslog", "--to", "tls://[::1]:1"});
  EXPECT_EQ(nobody.code, kUnreachable);
  EXPECT_THAT(nobody.err, HasSubstr("the server has the lines up to 0: go on with --after 0"));
}

TEST_F(AuditExport, TheAgentIsAskedToCompareAnAnchor) {
  agent.reader()->proof.whole = true;
  const CommandResult good = asked({"audit", "verify", "--anchor", anchor_of(2)});
  EXPECT_EQ(good.code, kOk) << good.err;
  ASSERT_TRUE(agent.reader()->verified);
  EXPECT_EQ(agent.reader()->verified->id, 2);
  EXPECT_EQ(asked({"audit", "verify", "--anchor", "nonsense"}).code, kUsage);
}

/// A line without a hash is older than the chain: it stands in front of it, and nowhere else.
TEST_F(AuditExport, ALineWithoutAHashIsFoundBehindTheBeginningOfTheChain) {
  const auto lines = lines_of(asked({"audit", "export"}).out);
  core::AuditRow forged;
  forged.id = 5;
  forged.at_ns = 1'760'000'009'000'000'000;
  forged.actor = "root";
  forged.verb = "approved";
  const std::string text = core::render(core::audit_json(forged)) + "\n";
  EXPECT_EQ(verified(lines[0] + lines[1] + lines[2] + lines[3] + text).code, kFinding) << "at the end";
  EXPECT_EQ(verified(lines[0] + text + lines[1] + lines[2] + lines[3]).code, kFinding) << "in between";
}

TEST_F(AuditExport, LinesFromBeforeTheChainLeadToItsFirstOne) {
  auto& log = agent.reader()->audit_log;
  log[0].hash.clear();
  log[1].hash.clear();
  std::string before;
  for (std::size_t i = 2; i < 4; ++i) before = log[i].hash = core::chain_hash(before, log[i].id, log[i]);
  const auto lines = lines_of(asked({"audit", "export"}).out);
  EXPECT_EQ(verified(lines[0] + lines[1] + lines[2] + lines[3]).code, kOk);
  EXPECT_EQ(verified(lines[1] + lines[0] + lines[2] + lines[3]).code, kFinding) << "swapped";
  EXPECT_EQ(verified(lines[0] + lines[2] + lines[3]).code, kFinding) << "one is missing";
  std::string other = lines[2];
  other.replace(other.find("kim"), 3, "bob");
  EXPECT_EQ(verified(lines[0] + lines[1] + other + lines[3]).code, kFinding) << "the first line of the chain";
}

/// The hash before its first line is not in a part of the log, but it may be known as an anchor.
TEST_F(AuditExport, TheFirstLineOfAPartIsCheckedByTheAnchorBeforeItAndElseSaidToBeUnchecked) {
  const auto lines = lines_of(asked({"audit", "export", "--after", "2"}).out);
  std::string other = lines[0];
  other.replace(other.find("kim"), 3, "bob");
  EXPECT_EQ(verified(other + lines[1], {"--anchor", anchor_of(2)}).code, kFinding);
  EXPECT_EQ(verified(lines[0] + lines[1], {"--anchor", anchor_of(2)}).code, kOk);
  EXPECT_THAT(verified(other + lines[1]).out, HasSubstr("line 3 itself was not checked"));
  EXPECT_THAT(verified(other + lines[1]).out, HasSubstr("whole: 1 lines"));
}

/// Whoever gives an anchor wants to know whether its line is still there.
TEST_F(AuditExport, AnAnchorThatWasNotComparedIsNoSuccess) {
  const auto lines = lines_of(asked({"audit", "export", "--after", "2"}).out);
  EXPECT_EQ(verified(lines[0] + lines[1], {"--anchor", anchor_of(1)}).code, kFinding);
  agent.reader()->proof.whole = true;
  agent.reader()->proof.unchecked = "the anchor's line 1 is older than the checked lines: use a later anchor";
  EXPECT_EQ(asked({"audit", "verify", "--anchor", anchor_of(1)}).code, kFinding);
}

/// A clock that was set back in between must not leave a gap in the export.
TEST_F(AuditExport, SinceATimeIsFromTheFirstSuchLineOn) {
  auto& log = agent.reader()->audit_log;
  log[2].at_ns -= 3'600'000'000'000;
  std::string before;
  for (auto& row : log) before = row.hash = core::chain_hash(before, row.id, row);
  const auto part = asked({"audit", "export", "--since", "2025-10-09T08:53:22Z"});
  EXPECT_EQ(lines_of(part.out).size(), 3U);
  EXPECT_EQ(verified(part.out).code, kOk) << verified(part.out).out;
}

}  // namespace
}  // namespace driftd::cli
