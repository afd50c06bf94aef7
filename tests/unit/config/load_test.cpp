// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/config.hpp"
#include "config/units.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

Config good(const std::string& text, std::map<std::string, std::string> environment = {}) {
  LoadOptions options;
  options.environment = [environment](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  auto loaded = parse(text, "driftd.yaml", options);
  if (!loaded) ADD_FAILURE() << render(loaded.error());
  return loaded.value_or(Config{});
}

std::vector<ConfigError> bad(const std::string& text) {
  const auto loaded = parse(text, "driftd.yaml");
  EXPECT_FALSE(loaded.has_value());
  return loaded ? std::vector<ConfigError>{} : loaded.error();
}

TEST(Load, EmptyFileGivesTheDefaults) {
  const Config config = good("");
  EXPECT_EQ(config.admin.socket, "/run/driftd/driftd.sock");
  EXPECT_EQ(config.metrics.prefix, "driftd");
  EXPECT_EQ(config.agent.plugin_dirs, std::vector<std::string>{"/usr/lib/driftd/providers"});
  EXPECT_FALSE(config.agent.name.empty());
  ASSERT_EQ(config.warnings.size(), 1u);
}

TEST(Load, AllMistakesAreReportedAtOnceInTheOrderOfTheFile) {
  const auto errors =
      bad("agent: { naem: x }\nlog: { level: loud }\nbackends: [ { name: a } ]\nroutes: [ { to: [nobody] } ]\n");
  EXPECT_EQ(errors.size(), 4u) << render(errors);
  EXPECT_EQ(render(errors).find("driftd.yaml:1:10: unknown key 'naem'"), 0u) << render(errors);
}

TEST(Load, MessageNamesWhatWhereExpectedFoundAndNextStep) {
  const auto errors = bad("admin: { listen: \"0.0.0.0:1\" }\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(render(errors[0]),
            "driftd.yaml:1:18: 'listen' of 'admin' is not a loopback address; expected 127.0.0.1:PORT, [::1]:PORT, or "
            "\"\" for "
            "none; found '0.0.0.0:1'; let a proxy on this machine serve it to others");
}

TEST(Load, RelativePathsOfPluginsStartAtTheFolderOfTheConfig) {
  const auto loaded =
      parse("agent: { plugin_dirs: [plugins, /opt/there] }\nbackends: [ { name: a, provider: ./a.so } ]\n",
            "/etc/nobody/driftd.yaml");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->agent.plugin_dirs, (std::vector<std::string>{"/etc/nobody/plugins", "/opt/there"}));
  EXPECT_EQ(loaded->agent.plugin_lock, "/etc/nobody/driftd.lock");
  EXPECT_FALSE(loaded->agent.plugin_lock_named);
  EXPECT_EQ(loaded->backends.at(0).provider, "/etc/nobody/a.so");
}

TEST(Load, APluginFolderThatIsNotThereIsAWarningWithItsPlace) {
  const Config config =
      good("agent: { plugin_dirs: [/nowhere/plugins] }\nbackends: [ { name: a, provider: redis } ]\n");
  const std::string warnings = render(config.warnings);
  EXPECT_NE(warnings.find("driftd.yaml:1:"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("folder /nowhere/plugins of 'plugin_dirs' is not there"), std::string::npos) << warnings;
}

TEST(Load, BudgetsOfProcessorTimeAndDescriptorsAreRead) {
  const Config config =
      good("defaults: { budgets: { cpu: 5s } }\nbackends:\n- { name: a, provider: redis, budgets: { files: 64 } }\n");
  EXPECT_EQ(config.backends.at(0).budgets.cpu, milliseconds(5000));
  EXPECT_EQ(config.backends.at(0).budgets.files, 64);
  EXPECT_EQ(bad("defaults: { budgets: { files: 8 } }\n").size(), 1u);
}

TEST(Load, ABudgetOfThreadsIsReadAndIsPartOfWhatAReloadCompares) {
  const std::string text = "backends:\n- { name: a, provider: redis, budgets: { threads: 64 } }\n";
  EXPECT_EQ(good(text).backends.at(0).budgets.threads, 64);
  EXPECT_EQ(bad("defaults: { budgets: { threads: 8 } }\n").size(), 1u);
}

TEST(Load, BackendTakesTheDefaultsAndOverridesThem) {
  const Config config = good(
      "defaults: { interval: 10s, budgets: { rss: 64MiB, call: 5s }, isolation: in-process }\n"
      "backends:\n- { name: a, provider: redis }\n- { name: b, provider: redis, interval: 1m, budgets: { rss: 1GiB }, "
      "isolation: process }\n");
  ASSERT_EQ(config.backends.size(), 2u);
  EXPECT_EQ(config.backends[0].interval, milliseconds(10'000));
  EXPECT_EQ(config.backends[0].isolation, core::SessionSpec::Isolation::in_process);
  EXPECT_EQ(config.backends[1].interval, milliseconds(60'000));
  EXPECT_EQ(config.backends[1].budgets.rss_bytes, 1 << 30);
  EXPECT_EQ(config.backends[1].budgets.call, milliseconds(5'000));
  EXPECT_EQ(config.backends[1].isolation, core::SessionSpec::Isolation::process);
}

TEST(Load, SettingsKeepTheirTypes) {
  const Config config = good(
      "backends: [ { name: a, provider: p, settings: { i: 9223372036854775808, d: 1.50, b: true, s: \"12\", oct: 007, "
      "y: yes, "
      "n: ~, l: [1, x] } } ]\n");
  EXPECT_EQ(config.backends.at(0).settings_json,
            R"({"b":true,"d":1.50,"i":9223372036854775808,"l":[1,"x"],"n":null,"oct":"007","s":"12","y":"yes"})");
}

TEST(Load, PoliciesOfTheBackendStandBeforeThoseOfTheDefaults) {
  const Config config = good(
      "defaults:\n  policy: [ { match: { class: config }, action: ignore } ]\n"
      "backends:\n- name: a\n  provider: p\n  policy:\n  - { match: { kind: topic }, action: auto }\n");
  const auto& rules = *config.backends.at(0).rules;
  ASSERT_EQ(rules.policy.size(), 2u);
  EXPECT_EQ(rules.policy[0].action, core::Action::automatic);
  EXPECT_EQ(rules.policy[0].where, "driftd.yaml:7:5");
  EXPECT_EQ(rules.policy[1].action, core::Action::ignore);
  EXPECT_FALSE(rules.config_policy_set);
}

TEST(Load, APolicyRuleMayHoldForATime) {
  const Config config = good(
      "backends:\n- name: a\n  provider: p\n  policy:\n"
      "  - { action: auto, from: 2099-01-01T00:00:00Z, until: \"2099-01-02T02:00:00+02:00\" }\n");
  const auto& rule = config.backends.at(0).rules->policy.at(0);
  EXPECT_EQ(rule.from_ns, 4'070'908'800'000'000'000);
  EXPECT_EQ(rule.until_ns, 4'070'995'200'000'000'000);
  EXPECT_NE(
      config.backends.at(0).rules->generation,
      good("backends:\n- name: a\n  provider: p\n  policy:\n  - { action: auto }\n").backends.at(0).rules->generation);
}

TEST(Load, TimesOfAPolicyRuleAreChecked) {
  const auto rule = [](const std::string& times) {
    return "backends:\n- name: a\n  provider: p\n  policy:\n  - { action: auto, " + times + " }\n";
  };
  const auto says = [&](const std::string& times, const std::string& text) {
    EXPECT_NE(render(bad(rule(times))).find(text), std::string::npos) << render(bad(rule(times)));
  };
  says("until: tomorrow", "driftd.yaml:5:28: 'until' of a policy rule is no moment");
  says("until: 2099-01-01T00:00:00", "a time with its zone");
  says("from: 2099-01-02T00:00:00Z, until: 2099-01-01T00:00:00Z", "ends before it begins");
  const std::string warned = render(good(rule("until: 2001-01-01T00:00:00Z")).warnings);
  EXPECT_NE(warned.find("this policy rule ended at 2001-01-01T00:00:00"), std::string::npos) << warned;
}

TEST(Load, ClassPoliciesHaveTheDefaultsOfTheSemantics) {
  const Config config =
      good("defaults: { policy: { endpoint: manual, config: auto } }\nbackends: [ { name: a, provider: p } ]\n");
  const auto& rules = *config.backends.at(0).rules;
  EXPECT_EQ(rules.class_policy.at(core::ChangeClass::credential), core::Action::automatic);
  EXPECT_EQ(rules.class_policy.at(core::ChangeClass::endpoint), core::Action::manual);
  EXPECT_TRUE(rules.config_policy_set);
}

TEST(Load, GenerationChangesWithTheRulesAndNotWithTheirPlace) {
  const auto generation = [](const std::string& before, const std::string& path) {
    return good(before + "backends: [ { name: a, provider: p, ignore: [\"" + path + "\"] } ]\n")
        .backends.at(0)
        .rules->generation;
  };
  EXPECT_EQ(generation("", "**.a"), generation("\n\n", "**.a"));
  EXPECT_NE(generation("", "**.a"), generation("", "**.b"));
}

TEST(Load, ExpectationsHoldPathsAndTypedValues) {
  const Config config = good(
      "backends:\n- name: a\n  provider: p\n  expect:\n  - match: { kind: topic, id: \"orders.*\" }\n"
      "    where: { 'config[\"min.insync.replicas\"]': 2 }\n");
  const auto& expect = config.backends.at(0).rules->expect.at(0);
  EXPECT_EQ(expect.attributes.at(0).first.render(), "config[\"min.insync.replicas\"]");
  EXPECT_EQ(core::render(expect.attributes.at(0).second), "2");
  EXPECT_EQ(expect.match.id->text(), "orders.*");
}

TEST(Load, WithoutRoutesEverySinkGetsEverything) {
  const Config config = good("sinks: { a: { type: stdout }, b: { type: notifications } }\n");
  ASSERT_EQ(config.routes.size(), 1u);
  EXPECT_EQ(config.routes[0].to, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.sinks.at(0).settings_json, "{}");
}

TEST(Load, SinkThatNoRouteNamesIsAWarning) {
  const Config config = good(
      "sinks: { a: { type: stdout }, b: { type: stdout } }\nroutes: [ { to: [a] } ]\nbackends: [ { name: x, provider: "
      "p } ]\n");
  ASSERT_EQ(config.warnings.size(), 1u);
  EXPECT_NE(render(config.warnings[0]).find("no route leads to sink 'b'"), std::string::npos);
}

TEST(Load, MissingFileAndFolderAreNamed) {
  const auto missing = load("/nonexistent/driftd.yaml");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(render(missing.error()[0]).find("/nonexistent/driftd.yaml: there is no such file"), 0u);
  EXPECT_FALSE(load("/tmp").has_value());
}

TEST(Load, EveryExampleIsValid) {
  LoadOptions options;
  options.resolve_secrets = false;
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(DRIFTD_SOURCE_DIR) + "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto loaded = load(entry.path(), options);
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : render(loaded.error()));
    for (const auto& warning : loaded ? loaded->warnings : std::vector<ConfigError>()) {
      const bool of_this_machine = warning.what.find("'plugin_dirs' is not there") != std::string::npos;
      EXPECT_TRUE(of_this_machine) << render({warning});
    }
    ++found;
  }
  EXPECT_GE(found, 2);
}

TEST(Units, DurationsAndSizesAreExact) {
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1'500));
  EXPECT_EQ(parse_duration("7d"), milliseconds(604'800'000));
  EXPECT_EQ(parse_bytes("512MiB"), 512ll << 20);
  EXPECT_EQ(parse_bytes("10MB"), 10'000'000);
  for (const char* text : {"", "s", "1", "1.s", ".5s", "1..5s", "1s1h", "99999999999999999999d", "1 s"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
}

TEST(Nearest, SwapsAndSmallSlipsAreFoundOthersAreNot) {
  const std::vector<std::string> known = {"interval", "isolation", "to"};
  EXPECT_EQ(nearest("intervla", known), "interval");
  EXPECT_EQ(nearest("too", known), "to");
  EXPECT_EQ(nearest("zebra", known), "");
}

}  // namespace
}  // namespace driftd::config
