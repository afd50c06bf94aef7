// SPDX-License-Identifier: Apache-2.0
#include "core/disclosure.hpp"

#include "core/judge/diff.hpp"

#include <gtest/gtest.h>

namespace driftd::core {
namespace {

const std::vector<FreeForm> kFree = {{"deployment", "", "containers.*.env.*.value"},
                                     {"deployment", "", "containers.*.args"},
                                     {"object", "", "**"},
                                     {"setting", "*.*", "value"}};

std::string showing(const Disclosure& disclosure, const ResourceId& id, const std::string& path, const Value& value) {
  switch (disclosure.of(id, Path::parse(path).value(), value)) {
    case Visibility::shown:
      return "shown";
    case Visibility::withheld:
      return "withheld";
    case Visibility::secret:
      return "secret";
  }
  return {};
}
std::string env(const std::string& name, const std::string& value, std::vector<RedactRule> rules = {}) {
  const std::string path = "containers.app.env[" + render(Value(name)) + "].value";
  return showing(Disclosure(kFree, rules), {"deployment", "prod/app"}, path, Value(value));
}
std::string arg(const std::string& value) {
  return showing(Disclosure(kFree, {}), {"deployment", "prod/auth-service"}, "containers.keycloak.args[0]",
                 Value(value));
}

TEST(Disclosure, AFreeFormValueIsWithheldUnlessItIsHarmless) {
  for (const char* name : {"DB_PASS", "MYSQL_PWD", "PASSPHRASE", "REDIS_AUTH", "ENCRYPTION_KEY", "SIGNING_KEY",
                           "API-KEY", "CONN", "WHATEVER"}) {
    EXPECT_EQ(env(name, "hunter2"), "withheld") << name;
  }
  EXPECT_EQ(env("JDBC", "jdbc:mysql://h/d?password=hunter2"), "withheld");
  EXPECT_EQ(env("URL", "redis://u:p@h"), "secret");
}

TEST(Disclosure, WhatOperatorsReadDailyIsShown) {
  const std::vector<std::pair<std::string, std::string>> harmless = {{"LOG_LEVEL", "debug"},
                                                                     {"LEVEL", "info"},
                                                                     {"DB_HOST", "db.prod.svc"},
                                                                     {"PORT", "8080"},
                                                                     {"TIMEOUT", "30s"},
                                                                     {"HEAP", "512Mi"},
                                                                     {"AWS_REGION", "eu-central-1"},
                                                                     {"FEATURE_X", "true"},
                                                                     {"MAX_CONNECTIONS", "100"},
                                                                     {"CONFIG", "/etc/app/config.yaml"},
                                                                     {"BASE_URL", "http://api.prod.svc:8080/v1"},
                                                                     {"APP_VERSION", "v1.2.3"},
                                                                     {"EMPTY", ""},
                                                                     {"CIDR", "10.0.0.0/16"},
                                                                     {"STARTED", "2026-11-22T10:00:00Z"},
                                                                     {"RATIO", "0.5"},
                                                                     {"logFormat", "json"}};
  for (const auto& [name, value] : harmless) EXPECT_EQ(env(name, value), "shown") << name;
}

TEST(Disclosure, NoFormThatASecretMayHaveIsHarmless) {
  for (const char* value : {"1a2b3c4d5e", "hunter2", "https://hooks.example/services/T00/B00/a1b2c3d4e5f6g7h8i9j0",
                            "/x/0a1b2c3d4e5f60718293a4b5c6d7", "correct horse battery", "c2VjcmV0c2VjcmV0",
                            "https://h/x?y=1", "12345678901234567890"}) {
    EXPECT_EQ(env("THING", value), "withheld") << value;
  }
  EXPECT_EQ(env("PIN", "1234"), "withheld");
}

TEST(Disclosure, ACommandLineIsJudgedWordByWord) {
  for (const char* word : {"--log-level=debug", "--verbose", "/usr/bin/app", "--port=80", "8080"})
    EXPECT_EQ(arg(word), "shown") << word;
  for (const char* word : {"-phunter2", "--auth=hunter2", "hunter2", "--password=hunter2", "--x=hunter2"})
    EXPECT_EQ(arg(word), "withheld") << word;
}

TEST(Disclosure, OutsideOfFreeFormOnlyTheFormOfAValueCounts) {
  const Disclosure disclosure(kFree, {});
  EXPECT_EQ(showing(disclosure, {"config_map", "a/b"}, "data.x", Value("anything")), "shown");
  EXPECT_EQ(showing(disclosure, {"config_map", "a/b"}, "data.x", Value("a: 1\npassword: hunter2\n")), "withheld");
  EXPECT_EQ(showing(disclosure, {"setting", "myapp.encryption"}, "value", Value("hunter2")), "withheld");
  EXPECT_EQ(showing(disclosure, {"setting", "search_path"}, "value", Value("hunter2")), "shown");
}

TEST(Disclosure, TheConfigurationShowsAndHidesByNameAndByPath) {
  EXPECT_EQ(env("MOTTO", "carpe diem", {{true, "MOTTO"}}), "shown");
  EXPECT_EQ(env("MOTTO", "carpe diem", {{true, "containers.*.env.MOTTO"}}), "shown");
  EXPECT_EQ(env("MOTTO", "carpe diem", {{true, "MOTT"}}), "withheld");
  EXPECT_EQ(env("LOG_LEVEL", "debug", {{false, "LOG_*"}}), "withheld");
  EXPECT_EQ(env("LOG_LEVEL", "debug", {{false, "LOG_*"}, {true, "LOG_LEVEL"}}), "withheld") << "the first that matches";
  EXPECT_EQ(env("URL", "redis://u:p@h", {{true, "URL"}}), "secret") << "a credential by its form is shown to nobody";
  EXPECT_EQ(env("LOG_LEVEL", "debug", {{false, "a..b"}}), "withheld") << "unreadable: fail closed";
  EXPECT_EQ(showing(Disclosure({}, {{false, "data.x"}}), {"config_map", "a"}, "data.x.y", Value(Value::Number{"1"})),
            "withheld");
}

TEST(Disclosure, WhatKubectlAppliedIsNeverShown) {
  const Disclosure disclosure({}, {{true, "annotations"}, {true, "**"}});
  const std::string path = R"(annotations["kubectl.kubernetes.io/last-applied-configuration"])";
  EXPECT_EQ(showing(disclosure, {"secret", "a/b"}, path, Value("{}")), "withheld");
}

TEST(Disclosure, TheStatusOfAFreeFormKindIsFreeForm) {
  const Disclosure disclosure(kFree, {});
  const Value status =
      parse(R"({"phase":"Ready","adminPassword":"hunter2","note":"any","uri":"postgres://u:p@h","ready":3})").value();
  EXPECT_EQ(render(disclosure.status({"object", "a"}, status)),
            R"({"adminPassword":"[REDACTED]","note":"[REDACTED]","phase":"Ready","ready":3,"uri":"[REDACTED]"})");
  EXPECT_EQ(render(disclosure.status({"role", "a"}, status)),
            R"({"adminPassword":"hunter2","note":"any","phase":"Ready","ready":3,"uri":"[REDACTED]"})")
      << "a provider's own words";
}

class WithKeys : public testing::Test {
 protected:
  RedactionKeys keys_{{"aaaa1111", {1}}, {"bbbb2222", {2}}};
  ResourceId id_{"deployment", "prod/app"};
  std::shared_ptr<const KindSchema> schema_ =
      KindSchema::parse(
          R"({"schema":"driftd-schema/1","kind":"deployment","attributes":{"containers.*.env.*.value":{"type":"string"}}})")
          .value();
  Disclosure disclosure_{kFree, {}};

  Value sealed(const std::string& body, const std::vector<std::string>& sensitive = {}) const {
    const auto worker = redact(body, id_, *schema_, sensitive, keys_.worker, &disclosure_).value();
    return parse(seal(worker, keys_.store).value()).value();
  }
  static std::string body(const std::string& value) {
    return R"({"containers":{"app":{"env":{"X":{"value":")" + value + R"("}}}}})";
  }
  std::string compared(const Value& before, const Value& after) const {
    DiffOptions options;
    options.id = id_;
    options.keys = &keys_;
    const auto found = diff(before, after, *schema_, options);
    std::string out;
    for (const auto& change : found.changes) {
      EXPECT_TRUE(change.redacted);
      EXPECT_EQ((change.old_value.value_or("") + change.new_value.value_or("")).find("hunter2"), std::string::npos);
      out += "changed " + change.path + " " + std::string(render(change.cls));
    }
    for (const auto& [path, value, same] : found.filled) out += "filled " + path;
    return out;
  }
};

TEST_F(WithKeys, AValueThatIsWithheldFromNowOnIsComparedExactly) {
  const std::string path = "containers.app.env.X.value";
  EXPECT_EQ(compared(parse(body("hunter2")).value(), sealed(body("hunter2"))), "filled " + path)
      << "an upgrade is no drift";
  EXPECT_EQ(compared(parse(body("hunter2-old")).value(), sealed(body("other value"))), "changed " + path + " config")
      << "and hides none";
}

TEST_F(WithKeys, AValueThatIsShownAgainIsComparedExactly) {
  EXPECT_EQ(compared(sealed(body("hunter2")), parse(body("hunter2")).value()), "filled containers.app.env.X.value");
  const auto found = diff(sealed(body("hunter2")), parse(body("motto")).value(), *schema_,
                          DiffOptions{1, {}, {}, false, nullptr, id_, &keys_});
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_TRUE(found.changes[0].redacted);
}

TEST_F(WithKeys, ASecretThatIsOnlyWithheldNowIsTheSameValue) {
  const std::string path = "containers.app.env.X.value";
  EXPECT_EQ(compared(sealed(body("hunter2"), {path}), sealed(body("hunter2"))), "filled " + path);
  EXPECT_EQ(compared(sealed(body("hunter2")), sealed(body("hunter2"))), "");
}

TEST_F(WithKeys, UnderAnotherKeyNothingIsSaid) {
  const Value now = sealed(body("hunter2"));
  keys_.store.id = "cccc3333";
  EXPECT_EQ(compared(parse(body("else entirely")).value(), now), "filled containers.app.env.X.value");
}

}  // namespace
}  // namespace driftd::core
