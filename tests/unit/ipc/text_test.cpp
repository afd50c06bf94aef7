// SPDX-License-Identifier: Apache-2.0
#include "ipc/text.hpp"

#include <gmock/gmock.h>
#include <map>
#include <vector>

#include "ipc/settings_schema.hpp"
#include "support/patience.hpp"

namespace driftd::ipc {
namespace {

using std::chrono::milliseconds;

TEST(Text, MalformedUtf8IsToldFromWellFormed) {
  for (const char* good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) EXPECT_TRUE(is_utf8(good));
  for (const char* bad : {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\xff"})
    EXPECT_FALSE(is_utf8(bad));
  EXPECT_EQ(printable("a\xff\xc3\xa9z", 100), "a?\xc3\xa9z");
  EXPECT_LE(printable(std::string(100, 'x'), 10).size(), 10u);
}

TEST(Text, WhatALibraryWritesOnSeveralLinesIsASentence) {
  EXPECT_EQ(as_sentence("connection failed:\r\n\tIs the server running\ton that host?\n"),
            "connection failed: Is the server running on that host?");
  EXPECT_EQ(as_sentence(" \n\t "), "");
  EXPECT_EQ(as_sentence("as it is"), "as it is");
}

TEST(Text, SecretsLeaveTextsLongestFirst) {
  const Scrubber scrubber({{"t1", "pass"}, {"t2", "password-is-long"}, {"t3", "ab"}});
  EXPECT_EQ(scrubber.text("a pass, a password-is-long, ab"), "a [REDACTED], a [REDACTED], ab");
}

TEST(Text, ADocumentKeepsShortSecretsWhichAreAlsoNames) {
  const Scrubber scrubber({{"t1", "postgres"}, {"t2", "quoted\"secret-text"}});
  EXPECT_EQ(scrubber.document(R"({"db":"postgres","x":"quoted\"secret-text"})"),
            R"({"db":"postgres","x":"[REDACTED]"})");
}

TEST(Text, ASecretLeavesTextsInEveryFormThatAnErrorMayQuote) {
  const auto scrubber = Scrubber::of_instance({{"t1", "redis://app:hunter2%21x@db:6379/0?private_token=glpat-canary"}},
                                              R"({"url":"t1"})");
  for (const char* quoted : {"auth of app with hunter2%21x failed", "hunter2!x", "hunter2%21x", "token glpat-canary",
                             "Basic YXBwOmh1bnRlcjIheA=="}) {
    EXPECT_THAT(scrubber.text(quoted), testing::HasSubstr("[REDACTED]")) << quoted;
  }
}

TEST(Text, UserAndPasswordThatStandApartAreKnownAsHttpSendsThem) {
  const auto scrubber = Scrubber::of_instance({{"t1", "hunter2"}}, R"({"http":{"username":"app","password":"t1"}})");
  EXPECT_EQ(scrubber.text("Authorization: Basic YXBwOmh1bnRlcjI="), "Authorization: Basic [REDACTED]");
}

TEST(Text, WhatWasRevealedToThePluginIsStillASecret) {
  const std::map<std::string, std::string> secrets = {{"t1", "redis://u:canary-pw@db.example:6379?x=canary-query"},
                                                      {"t2", "canary-in-a-name"}};
  const auto scrubber = Scrubber::of_instance(
      secrets, R"({"address":"redis://u:canary-pw@db.example:6379?x=canary-query","context":"canary-in-a-name"})");
  EXPECT_EQ(scrubber.text("redis://u:canary-pw@db.example:6379?x=canary-query: refused"),
            "redis://db.example:6379 refused");
  EXPECT_EQ(scrubber.text("no context canary-in-a-name; password canary-pw of db.example"),
            "no context [REDACTED]; password [REDACTED] of db.example");
  EXPECT_EQ(scrubber.document(R"({"at":"db.example:6379","who":"canary-in-a-name","q":"canary-query"})"),
            R"({"at":"db.example:6379","who":"canary-in-a-name","q":"[REDACTED]"})")
      << "an ordinary word of a body";
}

TEST(Text, EveryUrlLosesUserInfoAndQuery) {
  EXPECT_EQ(Scrubber().text("GET https://u:p@h/x?token=abc failed"), "GET https://h/x failed");
}

/// Returns true if any 4 consecutive bytes of the secret are shown; fewer are too few to recognize.
bool leaks(const std::string& shown, const std::string& secret) {
  for (std::size_t at = 0; at + 4 <= secret.size(); ++at) {
    if (shown.find(secret.substr(at, 4)) != std::string::npos) return true;
  }
  return false;
}

TEST(CutText, ASecretAcrossTheCutLeavesNothingWhateverStandsBeforeIt) {
  const std::string secret = "K4n4ry/PW:q7@Zr-end", tail(40'000, '.');
  const Scrubber scrubber({{"t1", secret}, {"t2", "another-secret-that-is-longer-than-the-first-one"}});
  for (const std::string& form :
       {secret, std::string("K4n4ry%2FPW%3Aq7%40Zr-end"), std::string("SzRuNHJ5L1BXOnE3QFpyLWVuZA==")}) {
    for (const std::size_t most : {16, 64, 8192}) {
      for (std::size_t before = most - 16; before <= most + form.size() + 70; ++before) {
        const std::string text = std::string(before, 'x') + form;
        EXPECT_FALSE(leaks(scrubber.printable(text + tail, most), form)) << form << " at " << before << " of " << most;
        EXPECT_FALSE(leaks(scrubber.one_line(text, most), form)) << form << " at the end, " << before << " of " << most;
        EXPECT_LE(scrubber.printable(text + tail, most).size(), most);
      }
    }
  }
}

TEST(CutText, WhatSecretsShrinkToBringsNoHalfOfOneBeforeTheCut) {
  const std::string secret = "K4n4ry" + std::string(500, 'Q') + "w3rty";
  const Scrubber scrubber(std::map<std::string, std::string>{{"t1", secret}});
  std::string many;
  for (int i = 0; i < 200; ++i) many += secret + " ";
  for (std::size_t shift = 0; shift < secret.size() + 2; ++shift) {
    const std::string shown = scrubber.printable(std::string(shift, 'x') + many, 1000);
    EXPECT_EQ(shown.find_first_of("K4QWw3ty"), std::string::npos) << shift;
  }
}

TEST(CutText, AUrlAcrossTheCutLeavesNothingOfItsUserInfo) {
  const Scrubber none;
  const std::string password(6000, 'Q');
  for (std::size_t before = 0; before < 8300; before += 7) {
    const std::string shown =
        none.printable(std::string(before, 'x') + " postgres://u:" + password + "@db.example/x", 8192);
    EXPECT_EQ(shown.find('Q'), std::string::npos) << before;
  }
  EXPECT_EQ(none.printable("see https://h.example/path and " + std::string(90'000, 'x'), 30),
            "see https://h.example/path and");
}

TEST(CutText, ASecretOfSeveralLinesLeavesALine) {
  const Scrubber scrubber(std::map<std::string, std::string>{{"t1", "first-half\nother-half"}});
  EXPECT_EQ(scrubber.one_line("key: first-half\nother-half!", 100), "key: [REDACTED]!");
}

TEST(CutText, ASecretThatComesLineByLineLeavesNothing) {
  const std::string key =
      "-----BEGIN PRIVATE KEY-----\r\nMC4CAQAwBQYDK2VwBCIEIA6U\r\nxjM9cU3pQq1dV7f5b0KXo2lQ\r\n-----END PRIVATE "
      "KEY-----\r\n";
  const Scrubber scrubber(std::map<std::string, std::string>{{"t1", key}});
  EXPECT_EQ(scrubber.one_line("tls: -----BEGIN PRIVATE KEY-----", 100), "tls: -----BEGIN PRIVATE KEY-----");
  EXPECT_EQ(scrubber.one_line("tls: MC4CAQAwBQYDK2VwBCIEIA6U", 100), "tls: [REDACTED]");
  EXPECT_EQ(scrubber.one_line("xjM9cU3pQq1dV7f5b0KXo2lQ\\n-----END", 100), "[REDACTED]\\n-----END");
}

TEST(CutText, CostsWhatIsShownAndNotWhatIsGiven) {
  std::map<std::string, std::string> secrets;
  for (int i = 0; i < 20; ++i) secrets["t" + std::to_string(i)] = std::string(2000, 'a') + std::to_string(i);
  const Scrubber scrubber(secrets);
  const auto begin = std::chrono::steady_clock::now();
  for (const char* piece : {"a", "://", "://a:1/", "u@"}) {
    std::string text;
    while (text.size() < (8u << 20)) text += piece;
    EXPECT_LE(scrubber.printable(text, 8192).size(), 8192u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5) * test::kPatience);
}

TEST(ShownSetting, AnAddressIsShownWithoutCredentialsAndAnythingElseNotAtAll) {
  EXPECT_EQ(displayed_setting("redis://u:p@h:1/0?t=x"), "redis://h:1/0");
  for (const char* address : {"h:6379", "db.example", "10.0.0.1", "/run/redis.sock", "h1:1,h2:2"})
    EXPECT_EQ(displayed_setting(address), address);
  for (const char* other : {"hunter2", "", "u:p@h:1", "host=h password=x", "a b.c"})
    EXPECT_EQ(displayed_setting(other), "[REDACTED]") << other;
}

TEST(Reveal, AValueThatThePluginGetsInClearStaysAmongTheSecrets) {
  std::map<std::string, std::string> secrets = {{"driftd-secret-1", "canary"}, {"driftd-secret-2", "other"}};
  std::string settings = R"({"address":"driftd-secret-1","password":"driftd-secret-2"})";
  const char* schema =
      R"({"type":"object","properties":{"address":{"type":"string"},"password":{"type":"string","writeOnly":true}}})";
  ASSERT_TRUE(resolve_plain_settings(settings, secrets, schema));
  EXPECT_EQ(settings, R"({"address":"canary","password":"driftd-secret-2"})");
  EXPECT_EQ(secrets.size(), 2u);
}

}  // namespace
}  // namespace driftd::ipc
