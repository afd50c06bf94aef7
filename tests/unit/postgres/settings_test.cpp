// SPDX-License-Identifier: Apache-2.0
#include "postgres/settings.hpp"

#include <gtest/gtest.h>

#include "driftd/sdk/types.hpp"

namespace driftd::postgres {
namespace {

std::string failure_of(const std::string& json) {
  try {
    parse_settings(json);
  } catch (const sdk::Failure& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Settings, EndpointsComeInEveryForm) {
  const Settings s = parse_settings(
      R"({"user":"u","endpoints":["db","db:6000","[::1]:6001","unix:/run/pg:6002","unix:/run/.s.PGSQL.6003"]})");
  std::vector<std::string> texts;
  for (const auto& e : s.endpoints) texts.push_back(e.text());
  EXPECT_EQ(texts,
            (std::vector<std::string>{"db:5432", "db:6000", "[::1]:6001", "unix:/run/pg:6002", "unix:/run:6003"}));
}

TEST(Settings, MistakesNameTheSetting) {
  EXPECT_NE(failure_of(R"({"user":"u"})").find("settings.endpoints"), std::string::npos);
  EXPECT_NE(failure_of(R"({"endpoints":"db"})").find("settings.user"), std::string::npos);
  EXPECT_NE(failure_of(R"({"user":"u","endpoints":"db:port"})").find("found 'db:port'"), std::string::npos);
  EXPECT_NE(failure_of(R"({"user":"u","endpoints":"db","verifiers":"x"})").find("settings.verifiers"),
            std::string::npos);
  EXPECT_NE(failure_of("[]").find("JSON object"), std::string::npos);
}

TEST(Settings, MistakesSayWhatWasExpectedAndWhatToDo) {
  const auto with = [](const std::string& more) { return failure_of(R"({"user":"u","endpoints":"db",)" + more + "}"); };
  EXPECT_EQ(with(R"("sslmod":"require")").substr(0, 34), "settings.sslmod: unknown setting; ");
  EXPECT_EQ(with(R"("socket":"run/pg")"),
            "settings.socket: expected the absolute path of a socket or its folder, found 'run/pg'; begin it with /");
  EXPECT_EQ(with(R"("include":"role/*")"),
            "settings.include: expected a list of texts, found text; write it in brackets: [\"…\"]");
}

/// A glob that matches nothing any more would leave the rules unwatched without a word.
TEST(Settings, TheFormerKindOfHbaRulesIsRefusedWithTheNewOne) {
  const auto with = [](const std::string& more) { return failure_of(R"({"user":"u","endpoints":"db",)" + more + "}"); };
  for (const char* scope : {R"("include":["role","hba_rule"])", R"("exclude":["hba_rule/*"])"}) {
    EXPECT_NE(with(scope).find("write hba: all rules of pg_hba.conf are one resource"), std::string::npos) << scope;
  }
  EXPECT_EQ(with(R"("include":["hba","hba_rules*"])"), "accepted");
}

TEST(Settings, TimeoutsEndWhereThoseOfPostgresqlEnd) {
  const auto with = [](const std::string& ms) {
    return failure_of(R"({"user":"u","endpoints":"db","statement_timeout_ms":)" + ms + "}");
  };
  EXPECT_EQ(with("2147483647"), "accepted");
  for (const char* ms : {"2147483648", "18446744073709551615"}) {
    EXPECT_NE(with(ms).find("settings.statement_timeout_ms: expected a whole number"), std::string::npos) << ms;
  }
}

}  // namespace
}  // namespace driftd::postgres
