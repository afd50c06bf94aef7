// SPDX-License-Identifier: Apache-2.0
#include "common/settings_reader.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "driftd/sdk/types.hpp"
#include "net/tls_settings.hpp"

namespace driftd::common {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

using Read = std::function<void(SettingsReader&)>;

std::string text_of_failure(const std::function<void()>& code) {
  try {
    code();
  } catch (const sdk::Failure& e) {
    EXPECT_EQ(e.code, DRIFTD_INVALID) << e.what();
    return e.what();
  }
  return "accepted";
}

std::string refusal(const json& settings, const Read& read) {
  return text_of_failure([&] {
    SettingsReader from(settings);
    read(from);
    from.finish();
  });
}

void read_text(SettingsReader& from) { from.text("a"); }
void read_flag(SettingsReader& from) { from.flag("a", false); }
void read_page(SettingsReader& from) { from.number("a", 5, {1, 10}); }
void read_texts(SettingsReader& from) { from.texts("a"); }
void read_text_or_texts(SettingsReader& from) { from.text_or_texts("a"); }

TEST(SettingsReader, WhatIsNotAJsonObjectIsRefused) {
  EXPECT_EQ(text_of_failure([] { parse_settings_json("{"); }),
            "settings: expected a JSON object, found text that is not valid JSON");
  EXPECT_EQ(text_of_failure([] { parse_settings_json("[]"); }), "settings: expected a JSON object, found a list");
  EXPECT_EQ(parse_settings_json(R"({"a": 1})").at("a"), 1);
}

TEST(SettingsReader, AbsentMembersYieldTheFallback) {
  const json none = json::object();
  SettingsReader from(none);
  EXPECT_FALSE(from.has("a"));
  EXPECT_EQ(from.text("a", "b"), "b");
  EXPECT_TRUE(from.flag("a", true));
  EXPECT_EQ(from.number("a", 0, {1, 10}), 0u) << "the fallback may be outside of the range";
  EXPECT_EQ(from.ms("a", milliseconds(7), milliseconds(10)), milliseconds(7));
  EXPECT_EQ(from.seconds("a", seconds(7), seconds(10)), seconds(7));
  EXPECT_THAT(from.texts("a", {"b"}), ElementsAre("b"));
  EXPECT_THAT(from.text_or_texts("a"), IsEmpty());
  EXPECT_THAT(from.text_map("a"), IsEmpty());
  EXPECT_THAT(from.objects("a"), IsEmpty());
  EXPECT_TRUE(from.raw("a").is_null());
  from.object("a").finish();
  from.finish();
}

TEST(SettingsReader, PresentMembersAreRead) {
  const json given = {{"text", "x"}, {"flag", true}, {"number", 10}, {"ms", 1}, {"s", 2}, {"texts", {"a", "b"}}};
  SettingsReader from(given);
  EXPECT_TRUE(from.has("text"));
  EXPECT_EQ(from.text("text", "y"), "x");
  EXPECT_EQ(from.required_text("text", "a text"), "x");
  EXPECT_TRUE(from.flag("flag", false));
  EXPECT_EQ(from.number("number", 5, {1, 10}), 10u);
  EXPECT_EQ(from.ms("ms", milliseconds(7), milliseconds(10)), milliseconds(1));
  EXPECT_EQ(from.seconds("s", seconds(7), seconds(10)), seconds(2));
  EXPECT_THAT(from.texts("texts"), ElementsAre("a", "b"));
  EXPECT_THAT(from.text_or_texts("texts"), ElementsAre("a", "b"));
  EXPECT_THAT(from.text_or_texts("text"), ElementsAre("x"));
  from.finish();
}

TEST(SettingsReader, AWrongTypeIsNamedWithItsPathAndTheNextStep) {
  EXPECT_EQ(refusal({{"a", 7}}, read_text), "settings.a: expected text, found a number; write it in quotes");
  EXPECT_EQ(refusal({{"a", true}}, read_text), "settings.a: expected text, found true; write it in quotes");
  EXPECT_EQ(refusal({{"a", nullptr}}, read_text),
            "settings.a: expected text, found null; add a value or remove the setting");
  EXPECT_EQ(refusal({{"a", "yes"}}, read_flag),
            "settings.a: expected true or false, found text; write it without quotes");
  EXPECT_EQ(refusal({{"a", "b"}}, read_texts),
            "settings.a: expected a list of texts, found text; write it in brackets: [\"…\"]");
  EXPECT_EQ(refusal({{"a", {"b", 7}}}, read_texts), "settings.a[1]: expected text, found a number; write it in quotes");
  EXPECT_EQ(refusal({{"a", json::object()}}, read_text_or_texts),
            "settings.a: expected a text or a list of texts, found an object");
}

TEST(SettingsReader, AValueOfTheWrongTypeIsNotQuoted) {
  for (const Read& read : {Read(read_flag), Read(read_page), Read(read_texts)}) {
    EXPECT_THAT(refusal({{"a", "canary"}}, read), Not(HasSubstr("canary")));
  }
  EXPECT_THAT(refusal({{"a", 271828}}, read_text), Not(HasSubstr("271828")));
}

TEST(SettingsReader, NumbersOutsideOfTheirRangeAreRefused) {
  const std::string expected = "settings.a: expected a whole number from 1 to 10, found ";
  const std::string step = "; choose a number of this range";
  EXPECT_EQ(refusal({{"a", 0}}, read_page), expected + "0" + step);
  EXPECT_EQ(refusal({{"a", 11}}, read_page), expected + "11" + step);
  EXPECT_EQ(refusal({{"a", -1}}, read_page), expected + "-1" + step);
  EXPECT_EQ(refusal({{"a", 1.5}}, read_page), expected + "1.5" + step);
  EXPECT_EQ(refusal({{"a", "5"}}, read_page), expected + "text; write it without quotes");
}

TEST(SettingsReader, DurationsNameTheirUnit) {
  const auto ms = [](SettingsReader& from) { from.ms("a", milliseconds(7), std::chrono::minutes(1)); };
  EXPECT_THAT(refusal({{"a", 0}}, ms),
              HasSubstr("settings.a: expected a whole number of milliseconds from 1 to 60000, found 0"));
  EXPECT_THAT(refusal({{"a", 60001}}, ms), HasSubstr("found 60001"));
  EXPECT_THAT(refusal({{"a", "5s"}}, ms), HasSubstr("found text"));
  EXPECT_EQ(refusal({{"a", 60000}}, ms), "accepted");
  const auto s = [](SettingsReader& from) { from.seconds("a", seconds(7), std::chrono::hours(1)); };
  EXPECT_THAT(refusal({{"a", 3601}}, s), HasSubstr("a whole number of seconds from 1 to 3600, found 3601"));
}

TEST(SettingsReader, ARequiredTextThatIsMissingOrEmptyIsNamed) {
  const auto read = [](SettingsReader& from) { from.required_text("user", "the name of a role"); };
  EXPECT_EQ(refusal(json::object(), read),
            "settings.user: expected the name of a role, found nothing; add it to settings");
  EXPECT_EQ(refusal({{"user", ""}}, read),
            "settings.user: expected the name of a role, found an empty text; write it between the quotes");
}

TEST(SettingsReader, AnUnknownMemberIsRefusedWithTheKnownNames) {
  const auto read = [](SettingsReader& from) {
    from.text("key");
    from.has("certificate");
    from.object("tls").finish();
  };
  EXPECT_EQ(refusal({{"keyy", "canary"}}, read),
            "settings.keyy: unknown setting; known are certificate, key, tls; correct the name or remove it");
  EXPECT_THAT(refusal({{"tls", {{"ca", "/ca"}}}}, read), HasSubstr("settings.tls.ca: unknown setting"));
}

TEST(SettingsReader, ObjectsAreReadWithTheirOwnPath) {
  const auto read = [](SettingsReader& from) {
    for (auto& one : from.objects("rules")) {
      one.required_text("name", "a name");
      one.finish();
    }
  };
  EXPECT_THAT(refusal({{"rules", {{{"name", "a"}}, json::object()}}}, read), HasSubstr("settings.rules[1].name: "));
  EXPECT_THAT(refusal({{"rules", {{{"name", "a"}, {"title", "b"}}}}}, read),
              HasSubstr("settings.rules[0].title: unknown"));
  EXPECT_EQ(refusal({{"rules", {7}}}, read), "settings.rules[0]: expected a JSON object, found a number");
  EXPECT_EQ(refusal({{"rules", json::object()}}, read), "settings.rules: expected a list of objects, found an object");
  EXPECT_EQ(refusal({{"a", "b"}}, [](SettingsReader& from) { from.object("a"); }),
            "settings.a: expected an object, found text");
}

TEST(SettingsReader, AMapOfTextsNamesTheWrongMember) {
  const json labels = {{"labels", {{"env", "prod"}, {"team", "a"}}}};
  SettingsReader from(labels);
  EXPECT_THAT(from.text_map("labels"), ElementsAre(Pair("env", "prod"), Pair("team", "a")));
  EXPECT_EQ(refusal({{"labels", {{"env", 7}}}}, [](SettingsReader& reader) { reader.text_map("labels"); }),
            "settings.labels.env: expected text, found a number; write it in quotes");
}

TEST(SettingsReader, ARawMemberIsKnown) {
  const json given = {{"backend", {{"type", "s3"}}}};
  SettingsReader from(given);
  EXPECT_EQ(from.raw("backend"), given.at("backend"));
  from.finish();
}

TEST(SettingsReader, TheScopeIsTwoListsOfGlobs) {
  const json given = {{"include", {"topic/*"}}, {"exclude", {"topic/tmp-*"}}};
  SettingsReader from(given);
  const sdk::Scope scope = read_scope(from);
  EXPECT_THAT(scope.include, ElementsAre("topic/*"));
  EXPECT_THAT(scope.exclude, ElementsAre("topic/tmp-*"));
  from.finish();
}

TEST(TlsSettings, AreReadWhole) {
  const json given = {{"ca", "/ca"}, {"certificate", "/c"}, {"key", "/k"}, {"server_name", "db"}};
  SettingsReader from(given, "settings.tls");
  const net::Tls tls = net::read_tls(from);
  from.finish();
  EXPECT_EQ(tls.ca, "/ca");
  EXPECT_EQ(tls.certificate, "/c");
  EXPECT_EQ(tls.key, "/k");
  EXPECT_EQ(tls.server_name, "db");
  EXPECT_TRUE(tls.verify);
}

TEST(TlsSettings, ACertificateNeedsItsKey) {
  const auto of = [](const json& tls) {
    return text_of_failure([&] {
      SettingsReader from(tls, "settings.tls");
      net::read_tls(from);
    });
  };
  const std::string expected = "settings.tls.certificate: expected a certificate and its key, or neither, found only ";
  EXPECT_EQ(of({{"certificate", "/c"}}), expected + "the certificate; add key to settings.tls");
  EXPECT_EQ(of({{"key", "/k"}}), expected + "the key; add certificate to settings.tls");
  EXPECT_EQ(of(json::object()), "accepted");
  EXPECT_EQ(of({{"ca", 7}}), "settings.tls.ca: expected text, found a number; write it in quotes");
}

}  // namespace
}  // namespace driftd::common
