// SPDX-License-Identifier: Apache-2.0
// The definition of a manual backend: the keys of one item of `backends:`, with less trust.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/registry.hpp"
#include "core/registration_names.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Definition : public testing::Test {
 protected:
  Definition() {
    auto loaded =
        parse("defaults: { interval: 7s, isolation: in-process }\nagent: { node: n1 }\n", dir_.file("d.yaml"));
    if (!loaded) throw std::runtime_error(render(loaded.error()));
    config_ = std::move(*loaded);
    dir_.write("secrets/one", "bytes");
    dir_.write("other", "canary");
    limits_.references = {"file:" + dir_.file("secrets") + "/*", "env:CACHE_*"};
  }
  BackendEntry read(const std::string& json) {
    auto out = read_definition(config_, json, limits_, options());
    if (!out) ADD_FAILURE() << render_definition(out.error());
    return out.value_or(BackendEntry{});
  }
  std::string refused(const std::string& json) {
    const auto out = read_definition(config_, json, limits_, options());
    EXPECT_FALSE(out.has_value()) << json;
    return out ? std::string() : render_definition(out.error());
  }
  std::string with_password(const std::string& text) {
    return refused(R"({"name":"x","provider":"p","settings":{"password":")" + text + R"("}})");
  }
  static LoadOptions options() {
    LoadOptions out;
    out.environment = [](const std::string& name) { return std::optional<std::string>("value of " + name); };
    return out;
  }

  test::TempDir dir_;
  Config config_;
  ManualLimits limits_;
};

TEST_F(Definition, ItHasTheKeysAndDefaultsOfTheFile) {
  const BackendEntry entry =
      read(R"({ "provider":"p", "name":"x","settings":{"password":"${file:)" + dir_.file("secrets/one") +
           R"(}","port":6379,"text":"6379","on":true},"labels":{"a":"b"},"policy":{"config":"auto"}})");
  EXPECT_EQ(entry.spec.interval, std::chrono::seconds(7));
  EXPECT_EQ(entry.spec.isolation, core::SessionSpec::Isolation::process) << "never in the agent itself";
  ASSERT_EQ(entry.files.size(), 1u);
  EXPECT_EQ(entry.spec.secrets.at(entry.files[0].token), "bytes");
  EXPECT_THAT(entry.spec.settings_json, AllOf(HasSubstr(R"("port":6379)"), HasSubstr(R"("text":"6379")"),
                                              HasSubstr(R"("on":true)"), Not(HasSubstr("bytes"))));
  EXPECT_THAT(entry.spec.registration_json, HasSubstr("${file:"));
  EXPECT_EQ(read(entry.spec.definition).spec.definition, entry.spec.definition) << "canonical";
  EXPECT_EQ(entry.secret_files.size(), 1u);
}

TEST_F(Definition, OnlyReferencesThatAreAllowedAreRead) {
  const std::string secrets = dir_.file("secrets"), other = dir_.file("other");
  EXPECT_THAT(with_password("${file:" + other + "}"), AllOf(HasSubstr("settings.password"), HasSubstr("references")));
  for (const auto& way :
       std::vector<std::string>{secrets + "/../other", secrets + "/./one", "secrets/one", secrets + "//one"}) {
    EXPECT_THAT(with_password("${file:" + way + "}"), HasSubstr("absolute path")) << way;
  }
  EXPECT_THAT(with_password("${env:HOME}"), HasSubstr("env:CACHE_*"));
  EXPECT_THAT(with_password("${exec:/bin/id}"), HasSubstr("may not use"));
  EXPECT_THAT(with_password("${credential:x}"), HasSubstr("may not use"));
  EXPECT_THAT(with_password("a ${env:CACHE_P} b"), HasSubstr("inside other text"));
  EXPECT_THAT(with_password("${env:CACHE_P"), HasSubstr("inside other text"));
  EXPECT_THAT(refused(R"({"name":"x","provider":"p","settings":{"list":[{"deep":"${env:HOME}"}]}})"),
              HasSubstr("settings.list[].deep"));
  EXPECT_EQ(read(R"({"name":"x","provider":"p","settings":{"password":"${env:CACHE_P}"}})").spec.secrets.size(), 1u);
  limits_ = {};
  EXPECT_THAT(with_password("${env:CACHE_P}"), HasSubstr("allows: none"));
}

TEST_F(Definition, ASecretInClearTextIsRefusedAndNotRepeated) {
  for (const char* setting : {R"("password":"canary")", R"("api_token":"canary")", R"("password":12345)",
                              R"("url":"https://u:canary@h/")", R"("dsn":"host=h password=canary")"}) {
    const std::string why = refused(std::string(R"({"name":"x","provider":"p","settings":{)") + setting + "}}");
    EXPECT_THAT(why, HasSubstr("clear text")) << setting;
    EXPECT_THAT(why, Not(HasSubstr("canary"))) << setting;
  }
}

TEST_F(Definition, ASecretInWhatEverybodyMayReadIsRefusedAndNotRepeated) {
  for (const char* text : {R"("endpoint":"redis://u:canary@h:1/")", R"("endpoint":"https://h/?token=canary9")",
                           R"("labels":{"a":"https://u:canary@h/"})", R"("labels":{"note":"password=canary9"})",
                           R"("labels":{"db_password":"canary9x!"})", R"("labels":{"https://u:canary@h/":"a"})",
                           R"("patterns":["https://u:canary@h/*"])"}) {
    const std::string why = refused(std::string(R"({"name":"x","provider":"p",)") + text + "}");
    EXPECT_THAT(why, HasSubstr("clear text")) << text;
    EXPECT_THAT(why, Not(HasSubstr("canary"))) << text;
  }
  const BackendEntry entry = read(
      R"({"name":"x","provider":"p","endpoint":"redis://h:6379","labels":{"team":"orders","docs":"https://wiki/x","tokens":"3"}})");
  EXPECT_EQ(entry.spec.endpoint, "redis://h:6379");
}

TEST_F(Definition, ANameIsOneOfTheFile) {
  for (const char* name : {"", ".", "..", "a/b", "a b", "a\\u0001b", "a\\u007fb", "a\\u0085b", "a\\u202eb", "type"}) {
    EXPECT_THAT(refused(std::string(R"({"name":")") + name + R"(","provider":"p"})"),
                testing::AnyOf(HasSubstr("name"), HasSubstr("control character")))
        << name;
    const auto file = parse(std::string("backends: [{ name: \"") + name + "\", provider: p }]\n", dir_.file("d.yaml"));
    EXPECT_FALSE(file.has_value()) << name << ": the file refuses it too";
  }
  EXPECT_EQ(read(R"({"name":"bücher-1.x","provider":"p"})").spec.name, "bücher-1.x");
}

TEST_F(Definition, ItsReferencesAreKnownToResolve) {
  const BackendEntry entry = read(
      R"({"name":"x","provider":"p","settings":{"password":"${env:CACHE_P}"},"credentials":{"password":"${env:CACHE_APP}"}})");
  ASSERT_EQ(entry.references.size(), 1u) << "credentials replace the references of the settings";
  EXPECT_EQ(entry.references[0].reference, "${env:CACHE_APP}");
  EXPECT_EQ(entry.references[0].backend, "x");
}

TEST_F(Definition, WhatIsForTheFileOnlyIsRefused) {
  for (const char* key : {R"("node":"n1")", R"("was":"y")", R"("isolation":"in-process")",
                          R"("budgets":{"rss":"100GiB"})", R"("redact":{"show":["**"]})"}) {
    EXPECT_THAT(refused(std::string(R"({"name":"x","provider":"p",)") + key + "}"), HasSubstr("configuration only"));
  }
  EXPECT_THAT(refused(R"({"name":"x","provider":"/tmp/p.so"})"), HasSubstr("path"));
  limits_.providers = {"redis", "k*"};
  EXPECT_THAT(refused(R"({"name":"x","provider":"p"})"), HasSubstr("redis, k*"));
  EXPECT_EQ(read(R"({"name":"x","provider":"kafka"})").spec.provider, "kafka");
}

TEST_F(Definition, EveryMistakeIsNamed) {
  EXPECT_THAT(refused(R"({"name":"x","provider":"p","intervals":"1s","interval":"1 day","labels":{"a":["b"]}})"),
              AllOf(HasSubstr("did you mean 'interval'"), HasSubstr("'interval'"), HasSubstr("labels")));
  EXPECT_THAT(refused("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(refused("{"), HasSubstr("JSON object"));
  EXPECT_THAT(refused("{}"), AllOf(HasSubstr("name"), HasSubstr("provider")));
  EXPECT_THAT(refused(R"({"name":"a/b","provider":"p"})"), HasSubstr("a/b"));
  EXPECT_THAT(refused(R"({"name":"x","provider":"p","settings":[1]})"), HasSubstr("settings"));
  EXPECT_THAT(refused(R"({"name":"x","provider":"p","policy":[{"match":{"path":"[["},"action":"auto"}]})"),
              HasSubstr("[["));
}

TEST_F(Definition, ChangedFieldsHaveTheRfcsNames) {
  const auto fields = core::registration_fields(
      "kafka",
      read(R"({"name":"x","provider":"kafka","settings":{"bootstrap_servers":"a:1,b:2"},"labels":{"region":"eu"}})")
          .spec.registration_json);
  ASSERT_TRUE(fields.has_value());
  const std::string text = core::render(*fields);
  EXPECT_THAT(text, HasSubstr(R"("config":{"kafka":{"brokers":["a:1","b:2"],"security_protocol":"PLAINTEXT"}})"));
  EXPECT_THAT(text, AllOf(HasSubstr(R"("metadata":{"region":"eu"})"), Not(HasSubstr("settings"))));
}

}  // namespace
}  // namespace driftd::config
