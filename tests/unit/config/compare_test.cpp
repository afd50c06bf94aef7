// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/registry.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

using Names = std::vector<std::string>;

/// What waits, each with its place behind `@`.
Names waiting(const Comparison& comparison) {
  Names out;
  for (const auto& one : comparison.restart) out.push_back(one.what + (one.where.empty() ? "" : "@" + one.where));
  return out;
}

Config config(const std::string& text) {
  auto loaded = parse(text, "driftd.yaml");
  if (!loaded) ADD_FAILURE() << render(loaded.error());
  return loaded.value_or(Config{});
}

const std::string kBase =
    "agent: { name: a }\nbackends:\n- { name: x, provider: p, settings: { k: 1 } }\nsinks: { s: { type: stdout } "
    "}\nroutes: [ { to: [s] } ]\n";

/// Returns `x: reopen settings, budgets` for each backend that differs, and `x: added`.
Names edits(const Config& running, const Config& next) {
  Names out;
  const auto before = entries_of(running);
  for (const auto& entry : entries_of(next)) {
    const auto same = [&](const BackendEntry& one) { return one.spec.name == entry.spec.name; };
    const auto known = std::find_if(before.begin(), before.end(), same);
    if (known == before.end()) {
      out.push_back(entry.spec.name + ": added");
      continue;
    }
    Names what;
    const auto edit = compare_backends(*known, entry, what);
    if (edit == core::BackendEdit::none) continue;
    std::string line = entry.spec.name + (edit == core::BackendEdit::reopen ? ": reopen" : ": in place");
    for (const auto& one : what) line += " " + one;
    out.push_back(line);
  }
  return out;
}

Comparison against_base(const std::string& from, const std::string& to) {
  std::string text = kBase;
  text.replace(text.find(from), from.size(), to);
  return compare(config(kBase), config(text));
}

TEST(Compare, LoginsOfApplicationsReopenNothingAndWhoMayHaveThemIsHot) {
  std::string text = kBase;
  text.replace(text.find("settings"), 0, "credentials: { username: app }, ");
  EXPECT_EQ(edits(config(kBase), config(text)), Names{"x: in place credentials"});
  const auto grants = against_base("sinks:", "resolve: { grants: [ { uid: 1, backends: [x] } ] }\nsinks:");
  EXPECT_EQ(waiting(grants), Names{});
  EXPECT_EQ(grants.hot, Names{"resolve"});
}

TEST(Compare, SameFileChangesNothing) {
  const auto same = compare(config(kBase), config("# moved\n" + kBase));
  EXPECT_EQ(same.hot, Names{});
  EXPECT_EQ(waiting(same), Names{});
}

Names edits_of_base(const std::string& from, const std::string& to) {
  std::string text = kBase;
  text.replace(text.find(from), from.size(), to);
  return edits(config(kBase), config(text));
}

TEST(Compare, WhatConcernsTheSessionOfABackendReopensItAndNothingElseDoes) {
  EXPECT_EQ(edits_of_base("k: 1", "k: 2"), Names{"x: reopen settings"});
  EXPECT_EQ(edits_of_base("provider: p,", "provider: q,"), Names{"x: reopen provider"});
  EXPECT_EQ(edits_of_base("provider: p,", "provider: p, budgets: { resources: 7 },"), Names{"x: reopen budgets"});
  EXPECT_EQ(edits_of_base("provider: p,", "provider: p, redact: { hide: [a] },"), Names{"x: reopen redact"});
  EXPECT_EQ(edits_of_base("provider: p,", "provider: p, isolation: in-process,"), Names{"x: reopen isolation"});
  EXPECT_EQ(edits_of_base("provider: p,", "provider: p, interval: 1m,"), Names{"x: in place interval"});
  EXPECT_EQ(
      edits_of_base("provider: p,", "provider: p, endpoint: e, labels: { a: b }, patterns: [c], discover: false,"),
      Names{"x: in place endpoint labels patterns discover"});
  EXPECT_EQ(edits_of_base("provider: p,", "provider: p, ignore: [\"**.t\"],"), Names{"x: in place rules"});
  EXPECT_EQ(edits_of_base("name: x", "name: y"), Names{"y: added"});
  EXPECT_EQ(edits_of_base("agent: {", "defaults: { interval: 7s }\nagent: {"), Names{"x: in place interval"});
  EXPECT_EQ(edits(config(kBase), config("# moved\n" + kBase)), Names{});
  EXPECT_EQ(entries_of(config("# moved\n" + kBase)).at(0).spec.defined_at, "driftd.yaml:4:3");
}

TEST(Compare, RoutesAreHot) {
  EXPECT_EQ(against_base("{ to: [s] }", "{ match: { change: [created] }, to: [s] }").hot, Names{"routes"});
  EXPECT_EQ(against_base("provider: p,", "provider: p, policy: { config: auto },").restart.size(), 0u);
  EXPECT_EQ(against_base("k: 1", "k: 2").restart.size(), 0u);
}

TEST(Compare, TheRestNeedsARestartAndIsNamedWithItsPlace) {
  const auto from_to = [](const std::string& from, const std::string& to) { return waiting(against_base(from, to)); };
  EXPECT_EQ(from_to("name: a", "name: b"), Names{"agent.name@driftd.yaml:1"});
  EXPECT_EQ(from_to("sinks: {", "grpc: { socket: /s }\nsinks: {"), Names{"grpc@driftd.yaml:4"});
  EXPECT_EQ(from_to("type: stdout", "type: notifications"), Names{"sinks.s@driftd.yaml:4"});
  EXPECT_EQ(
      from_to("sinks: {", "admin: { listen: \"\" }\nretention: { delivered: 2d, max_bytes: 9GiB }\nsinks: {"),
      (Names{"admin.listen@driftd.yaml:4", "retention.delivered@driftd.yaml:5", "retention.max_bytes@driftd.yaml:5"}));
}

TEST(Compare, WhatStandsInAFileOfABackendIsFollowedAndTheReferenceIsNot) {
  const test::TempDir folder;
  folder.write("pw", "one");
  folder.write("other", "two");
  const auto loaded = [&](const std::string& reference) {
    auto out = parse(
        "backends: [ { name: x, provider: p, settings: { password: \"" + reference + "\", user: \"${file:pw}\" } } ]\n",
        folder.file("driftd.yaml"));
    if (!out) ADD_FAILURE() << render(out.error());
    return out.value_or(Config{});
  };
  const Config running = loaded("${file:pw}");
  folder.write("pw", "two");
  EXPECT_EQ(edits(running, loaded("${file:pw}")), Names{});
  const Names settings{"x: reopen settings"};
  EXPECT_EQ(edits(running, loaded("${file:other}")), settings);
  EXPECT_EQ(edits(running, loaded("literal")), settings);
  EXPECT_EQ(edits(loaded("literal"), loaded("lateral")), settings);
}

TEST(Compare, AnotherTemplateOfAMessageNeedsARestart) {
  const test::TempDir folder;
  const auto load = [&] {
    auto out = parse("sinks: { s: { type: webhook, url: \"${file:url}\", format: slack, template: t.yaml } }\n",
                     folder.file("driftd.yaml"));
    EXPECT_TRUE(out) << render(out.error());
    return out.value_or(Config{});
  };
  folder.write("url", "https://h/x");
  folder.write("t.yaml", "text: \"{{ title }}\"\n");
  const Config running = load();
  EXPECT_TRUE(waiting(compare(running, load())).empty());
  folder.write("t.yaml", "text: \"{{ title }}!\"\n");
  EXPECT_EQ(waiting(compare(running, load())), (Names{"sinks.s (its template)@" + folder.file("driftd.yaml") + ":1"}));
  folder.write("t.yaml", "text: \"{{ titled }}\"\n");
  const auto broken = parse("sinks: { s: { type: webhook, url: \"${file:url}\", format: slack, template: t.yaml } }\n",
                            folder.file("driftd.yaml"));
  ASSERT_FALSE(broken);
  EXPECT_NE(render(broken.error()).find(folder.file("t.yaml") + ":1:8: there is no field 'titled'"), std::string::npos)
      << render(broken.error());
}

TEST(Compare, TheSigningSecretsOfAWebhookAreHotAndNothingElseOfIt) {
  const auto loaded = [](const std::string& keys) {
    return config("sinks: { s: { type: webhook, url: \"https://h/x\", " + keys + " } }\n");
  };
  const std::string old_key = "\"0123456789abcdef\"", new_key = "\"fedcba9876543210\"";
  const Config running = loaded("secret: " + old_key);
  const auto both = compare(running, loaded("secrets: [" + new_key + ", " + old_key + "]"));
  EXPECT_EQ(both.hot, Names{"sinks.s (its signing secrets)"});
  EXPECT_EQ(both.rekeyed, Names{"s"});
  EXPECT_EQ(waiting(both), Names{});
  for (const char* more : {", mode: binary", ", headers: { A: b }", ", ca_file: /ca", ", events: digests_only"}) {
    const auto other = compare(running, loaded("secret: " + new_key + more));
    EXPECT_EQ(other.rekeyed, Names{}) << more;
    EXPECT_EQ(waiting(other), Names{"sinks.s@driftd.yaml:1"}) << more;
  }
  EXPECT_EQ(compare(running, loaded("secret: " + old_key)).rekeyed, Names{});
}

TEST(Compare, ASecretOfASinkIsNotFollowed) {
  const test::TempDir folder;
  folder.write("hook", "one");
  const auto loaded = [&] {
    auto out = parse("sinks: { s: { type: nats, password: \"${file:hook}\" } }\n", folder.file("driftd.yaml"));
    if (!out) ADD_FAILURE() << render(out.error());
    return out.value_or(Config{});
  };
  const Config running = loaded();
  folder.write("hook", "two");
  EXPECT_EQ(waiting(compare(running, loaded())), Names{"sinks.s (a secret)@" + folder.file("driftd.yaml") + ":1"});
}

}  // namespace
}  // namespace driftd::config
