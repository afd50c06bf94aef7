// SPDX-License-Identifier: Apache-2.0
// Audit lines as JSON, CEF and RFC 5424: nothing in a line can end it, or begin another field.
#include <gmock/gmock.h>

#include "core/audit_text.hpp"

namespace driftd::core {
namespace {

using testing::HasSubstr;
using testing::Not;

AuditRow row() {
  AuditRow out;
  out.id = 7;
  out.at_ns = 1'760'000'000'123'456'789;
  out.actor = "kim";
  out.caller = {1000, 1001, 4711, "loginuid:kim"};
  out.verb = "approved";
  out.subject = "d-1";
  out.backend = "cache";
  out.resource = "server/server";
  out.digest = std::string(64, 'a');
  out.changes = R"([{"new":9223372036854775808,"old":"0","path":"config.maxmemory"}])";
  out.reason = "more room";
  out.expires_ns = 1'760'000'100'000'000'001;
  out.request = "r-1";
  out.hash = chain_hash("", 7, out);
  return out;
}

const AuditOrigin kOrigin{"host1", "edge-1", "1.2.3"};

TEST(AuditText, JsonGivesEveryFieldBackExactly) {
  AuditRow none = row();
  none.changes.clear();
  none.expires_ns.reset();
  none.caller = {};
  for (const auto& line : {row(), none, AuditRow{}}) {
    const auto back = parse_audit_json(render(audit_json(line)));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(chain_hash("x", back->id, *back), chain_hash("x", line.id, line));
    EXPECT_EQ(back->hash, line.hash);
  }
}

/// `at` is for people and under no hash, so it must not be able to say something else than `at_ns`.
TEST(AuditText, AJsonLineThatIsNotWhatWasWrittenIsRefused) {
  const std::string line = render(audit_json(row()));
  std::string other = line;
  other.replace(other.find("2025-10-09"), 4, "2024");
  for (const auto& bad : {other, line + " ", line.substr(1), std::string("{}"), std::string("[]"), std::string()}) {
    EXPECT_FALSE(parse_audit_json(bad)) << bad;
  }
}

TEST(AuditText, CefEscapesWhatWouldEndAFieldOrALine) {
  AuditRow line = row();
  line.verb = "a|b\\c\nd";
  line.reason = "x=1 msg=forged\\\nCEF:0|\r\x1b[2J";
  const std::string text = render_cef(line, kOrigin);
  EXPECT_THAT(text, testing::StartsWith("CEF:0|driftd|driftd|1.2.3|a\\|b\\\\c"));
  EXPECT_THAT(text, HasSubstr("reason=x\\=1 msg\\=forged\\\\\\nCEF:0|\\r\\\\x1b[2J"));
  EXPECT_THAT(text, HasSubstr("|3|rt=1760000000123 "));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(text, HasSubstr("cs1Label=backend cs1=cache"));
  EXPECT_THAT(text, HasSubstr("outcome=success"));
}

/// Collectors find a key by the space in front of it, so a value that ends with `|` must not join the next one.
TEST(AuditText, NoValueOfCefSwallowsTheNextField) {
  AuditRow line = row();
  line.actor = line.reason = line.subject = line.backend = "x|";
  const std::string text = render_cef(line, kOrigin);
  EXPECT_THAT(text, HasSubstr("suser=x| suid=1000"));
  EXPECT_THAT(text, HasSubstr("reason=x| msg=x| cs1Label=backend cs1=x| cs2Label="));
}

TEST(AuditText, TheIdOfSyslogsStructuredDataIsAName) {
  EXPECT_THAT(render_rfc5424(row(), kOrigin, "a=b\"]c d"), HasSubstr(" [a_b__c_d line=\"7\""));
}

/// The hash of a line without an end is that of one that ended in 1970, and nobody writes the latter.
TEST(AuditText, AnEndThatNobodyGaveIsFound) {
  AuditRow line = row();
  line.expires_ns = 0;
  AuditChain chain;
  ASSERT_EQ(chain.begin({6, ""}), "");
  line.hash = chain_hash("", 7, line);
  EXPECT_THAT(chain.check(line), HasSubstr("was changed"));
}

TEST(AuditText, CefSaysThatACallerWasRefused) {
  AuditRow line = row();
  line.verb = "refused";
  line.outcome = "denied: user mallory may not use this agent's API";
  EXPECT_THAT(render_cef(line, kOrigin), HasSubstr("|refused|refused|7|"));
  EXPECT_THAT(render_cef(line, kOrigin), HasSubstr("outcome=failure"));
}

TEST(AuditText, SyslogEscapesParametersAndHasTheFormOfRfc5424) {
  AuditRow line = row();
  line.reason = "a\"b]c\\d\n<13>1 forged";
  const std::string text = render_rfc5424(line, kOrigin, "driftd@32473");
  EXPECT_THAT(text, testing::StartsWith("<109>1 2025-10-09T08:53:20.123456Z host1 driftd - approved [driftd@32473 "
                                        "line=\"7\" verb=\"approved\" actor=\"kim\" "));
  EXPECT_THAT(text, HasSubstr("reason=\"a\\\"b\\]c\\\\d\\\\x0a<13>1 forged\""));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(text, HasSubstr("] \xEF\xBB\xBFkim approved d-1"));
  line.outcome = "denied: no";
  line.verb = "asked plugins resume";
  EXPECT_THAT(render_rfc5424(line, kOrigin, "driftd@32473"), testing::StartsWith("<108>1 "));
  EXPECT_THAT(render_rfc5424(line, kOrigin, "driftd@32473"), HasSubstr(" asked_plugins_resume ["));
}

TEST(AuditText, AnAnchorIsANumberAndAHash) {
  const auto link = parse_audit_link("12:" + std::string(64, 'f'));
  ASSERT_TRUE(link);
  EXPECT_EQ(link->id, 12);
  for (const char* bad : {"", "12", "12:", "12:abc", ":", "x:y", "-1:aa", "12:zz"}) {
    EXPECT_FALSE(parse_audit_link(bad)) << bad;
  }
}

}  // namespace
}  // namespace driftd::core
