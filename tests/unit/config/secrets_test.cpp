// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/secrets.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

constexpr const char* kCanary = "canary-7f3a";

Config one(const std::string& settings, const test::TempDir& folder, bool resolve = true) {
  LoadOptions options;
  options.resolve_secrets = resolve;
  options.environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "PW") return kCanary;
    if (name == "CREDENTIALS_DIRECTORY") return folder.path().string();
    return std::nullopt;
  };
  auto loaded = parse("backends: [ { name: a, provider: p, settings: { " + settings + " } } ]\n",
                      folder.file("driftd.yaml"), options);
  if (!loaded) ADD_FAILURE() << render(loaded.error());
  return loaded.value_or(Config{});
}

/// The one secret; checks that neither settings nor registration nor warnings hold it.
std::string secret_of(const Config& config) {
  const auto& spec = config.backends.at(0);
  for (const auto* text : {&spec.settings_json, &spec.registration_json}) {
    EXPECT_EQ(text->find(kCanary), std::string::npos) << *text;
  }
  EXPECT_EQ(render(config.warnings).find(kCanary), std::string::npos);
  if (spec.secrets.size() != 1) return "";
  EXPECT_NE(spec.settings_json.find(spec.secrets.begin()->first), std::string::npos);
  return spec.secrets.begin()->second;
}

TEST(Secrets, EnvironmentFileAndCredentialBecomeTokens) {
  const test::TempDir folder;
  const std::string file = folder.write("redis", std::string(kCanary) + "\n");
  EXPECT_EQ(secret_of(one("a: \"${env:PW}\"", folder)), kCanary);
  EXPECT_EQ(secret_of(one("a: \"${file:" + file + "}\"", folder)), kCanary);
  EXPECT_EQ(secret_of(one("a: \"${file:redis}\"", folder)), kCanary) << "relative to the config file";
  EXPECT_EQ(secret_of(one("a: { b: [ \"${credential:redis}\" ] }", folder)), kCanary);
}

TEST(Secrets, RegistrationShowsTheReference) {
  const test::TempDir folder;
  const Config config = one("sasl: { password: \"${env:PW}\" }", folder);
  EXPECT_NE(config.backends[0].registration_json.find("${env:PW}"), std::string::npos);
  EXPECT_TRUE(config.warnings.empty());
}

TEST(Secrets, EachReferenceOfABackendIsListedAndLoginsOfApplicationsReplaceThem) {
  test::TempDir folder;
  folder.write("own", "own-text");
  folder.write("app", "app-text");
  const auto load = [&](const std::string& credentials) {
    LoadOptions options;
    options.environment = [](const std::string&) { return std::optional<std::string>("env-text"); };
    return parse("backends: [ { name: a, provider: p, settings: { x: \"${file:own}\", y: [ \"${env:Y}\" ] } " +
                     credentials + " } ]\n",
                 folder.file("f.yaml"), options);
  };
  const auto own = load("");
  ASSERT_TRUE(own) << render(own.error());
  ASSERT_EQ(own->credential_uses.size(), 2u);
  EXPECT_EQ(own->credential_uses[0].reference, "${file:own}");
  EXPECT_EQ(own->credential_uses[0].file, folder.file("own"));
  EXPECT_EQ(own->credential_uses[1].variable, "Y");
  EXPECT_EQ(own->backends[0].registration_json.find("credentials"), std::string::npos);
  const auto apps = load(", credentials: { username: app, password: \"${file:app}\" }");
  ASSERT_TRUE(apps) << render(apps.error());
  ASSERT_EQ(apps->credential_uses.size(), 1u);
  EXPECT_EQ(apps->credential_uses[0].file, folder.file("app"));
  EXPECT_NE(apps->backends[0].registration_json.find(R"("credentials":{"password":"${file:app}","username":"app"})"),
            std::string::npos);
  EXPECT_EQ(apps->file_uses.size(), 1u) << "the session of the provider does not follow it";
  const auto wrong = load(", credentials: { password: { a: 1 } }");
  ASSERT_FALSE(wrong);
  EXPECT_NE(render(wrong.error()).find("credential 'password' of 'a' is not a text"), std::string::npos);
}

TEST(Secrets, LiteralsWarnAndBecomeTokens) {
  const test::TempDir folder;
  for (const std::string settings :
       {"password: canary-7f3a", "sasl: { sasl_password: canary-7f3a }", "tokens: [canary-7f3a]",
        "url: \"redis://u:canary-7f3a@h\"", "dsn: \"host=h password=canary-7f3a\""}) {
    const Config config = one(settings, folder);
    EXPECT_NE(secret_of(config).find(kCanary), std::string::npos) << settings;
    EXPECT_EQ(config.warnings.size(), 1u) << settings;
    EXPECT_NE(config.backends[0].registration_json.find("[REDACTED]"), std::string::npos);
  }
}

TEST(Secrets, NamesThatOnlyPointToASecretAreNone) {
  EXPECT_TRUE(is_secret_name("password") && is_secret_name("sasl_password") && is_secret_name("sasl.jaas.Password") &&
              is_secret_name("API-KEY"));
  EXPECT_FALSE(is_secret_name("password_file") || is_secret_name("secret_name") || is_secret_name("tokenizer") ||
               is_secret_name("keepassword"));
}

TEST(Secrets, NotResolvingChecksTheFormOnly) {
  const test::TempDir folder;
  EXPECT_EQ(secret_of(one("a: \"${file:/nonexistent}\"", folder, false)), "");
}

TEST(Secrets, TokensDifferBetweenBackendsAndStayOverReloads) {
  const test::TempDir folder;
  const std::string text =
      "backends: [ { name: a, provider: p, settings: { x: \"${file:s}\" } }, { name: b, provider: p, settings: { x: "
      "\"${file:s}\" } } ]\n";
  folder.write("s", kCanary);
  const auto first = parse(text, folder.file("f.yaml"));
  const auto second = parse(text, folder.file("f.yaml"));
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->backends[0].settings_json, first->backends[1].settings_json);
  EXPECT_EQ(first->backends[0].settings_json, second->backends[0].settings_json);
}

}  // namespace
}  // namespace driftd::config
