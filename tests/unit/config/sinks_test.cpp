// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <algorithm>

#include "config/config.hpp"

namespace driftd::config {
namespace {

Loaded sink(const std::string& text) {
  LoadOptions options;
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    return name == "S" ? std::optional<std::string>("canary-1") : std::nullopt;
  };
  return parse("sinks: { s: { " + text + " } }\n", "driftd.yaml", options);
}

std::string refused(const std::string& text) {
  const auto loaded = sink(text);
  return loaded ? "accepted" : render(loaded.error());
}

template <class Settings>
Settings settings_of(const Loaded& loaded) {
  if (!loaded) ADD_FAILURE() << render(loaded.error());
  return loaded ? std::get<Settings>(loaded->sinks.at(0).settings) : Settings{};
}

TEST(Sinks, NatsTakesItsSettings) {
  const auto loaded =
      sink(R"(type: nats, servers: ["nats://h:1", "${env:S}"], jetstream: { stream: X, max_age: 1d, create: false },
      user: u, password: "${env:S}", tls: { ca: /ca.pem }, type_format: kind.changetype)");
  const auto settings = settings_of<sinks::NatsSettings>(loaded);
  EXPECT_EQ(settings.servers, (std::vector<std::string>{"nats://h:1", "canary-1"}));
  EXPECT_EQ(settings.stream, "X");
  EXPECT_EQ(settings.max_age, std::chrono::seconds(86'400));
  EXPECT_TRUE(settings.jetstream && !settings.create_stream && settings.tls && settings.kind_change_type &&
              settings.views);
  EXPECT_EQ(settings.password, "canary-1");
  EXPECT_EQ(loaded->sinks.at(0).settings_json.find("canary"), std::string::npos);
}

TEST(Sinks, NatsTakesSwitchesForJetStreamAndTls) {
  const auto settings = settings_of<sinks::NatsSettings>(sink("type: nats, jetstream: false, tls: true"));
  EXPECT_FALSE(settings.jetstream);
  EXPECT_TRUE(settings.tls);
}

TEST(Sinks, KafkaTakesItsSettings) {
  const auto loaded = sink(
      R"(type: kafka, bootstrap_servers: ["h:9092", "[::1]:9093"], topic: t.x, create_topic: false, partitions: 12,
      replication_factor: 3, retention: 2d, format: json, compression: zstd, transactional_id: edge-1, ack_wait: 9s,
      tls: { ca: /ca.pem, certificate: /c.pem, key: /k.pem, key_password: "${env:S}", server_name: broker },
      sasl: { mechanism: SCRAM-SHA-512, username: u, password: "${env:S}" })");
  const auto settings = settings_of<sinks::KafkaSettings>(loaded);
  EXPECT_EQ(settings.bootstrap_servers, (std::vector<std::string>{"h:9092", "[::1]:9093"}));
  EXPECT_TRUE(settings.topic == "t.x" && !settings.create_topic && settings.json && settings.compression == "zstd");
  EXPECT_TRUE(settings.partitions == 12 && settings.replication_factor == 3);
  EXPECT_EQ(settings.retention, std::chrono::milliseconds(2LL * 86'400'000));
  EXPECT_EQ(settings.transactional_id, "edge-1");
  EXPECT_EQ(settings.ack_wait, std::chrono::milliseconds(9'000));
  EXPECT_TRUE(settings.tls && settings.tls_verify);
  EXPECT_EQ(settings.tls_ca + settings.tls_certificate + settings.tls_key, "/ca.pem/c.pem/k.pem");
  EXPECT_EQ(settings.tls_key_password + settings.tls_server_name, "canary-1broker");
  EXPECT_EQ(settings.sasl_mechanism + settings.sasl_username + settings.sasl_password, "SCRAM-SHA-512ucanary-1");
  EXPECT_EQ(loaded->sinks.at(0).settings_json.find("canary"), std::string::npos);
}

TEST(Sinks, KafkaRefusesWhatItCannotUse) {
  const auto with = [](const std::string& more) {
    return refused("type: kafka, bootstrap_servers: [\"h:9092\"], " + more);
  };
  const std::pair<std::string, std::string> mistakes[] = {
      {refused("type: kafka"), "driftd.yaml:1:13: sink 's' has no bootstrap_servers"},
      {refused("type: kafka, bootstrap_servers: [h]"), "the port is missing"},
      {refused("type: kafka, bootstrap_servers: [\"h:9092,k:9092\"]"), "it contains a space, '/', '@' or ','"},
      {with("topic: \"a b\""), "driftd.yaml:1:66: 'topic' of sink 's' is not a name of a Kafka topic"},
      {with("partitions: 0"), "partitions"},
      {with("format: avro"), "expected one of protobuf, json; found 'avro'"},
      {with("compression: lz5"), "did you mean 'lz4'?"},
      {with("tls: { certificate: /c.pem }"), "only one of 'certificate' and 'key'"},
      {with("tls: { verify: false, server_name: x }"), "compared with nothing"},
      {with("sasl: { mechanism: PLAIN, username: u }"), "has no 'password'"},
      {with("sasl: { mechanism: GSSAPI, username: u, password: p }"), "PLAIN"},
      {with("sasl: PLAIN"), "a map with 'mechanism'"},
      {with("acks: 1"), "unknown key 'acks'"},
      {with("tls: { cert: /c.pem }"), "unknown key 'cert'"}};
  for (const auto& [text, expected] : mistakes) EXPECT_NE(text.find(expected), std::string::npos) << text << expected;
}

TEST(Sinks, KafkaWarnsOfALoginWithoutTlsToAnotherMachine) {
  const auto warns = [](const std::string& host, const std::string& more) {
    const auto loaded = sink("type: kafka, bootstrap_servers: [\"" + host +
                             ":1\"], sasl: { mechanism: PLAIN, username: u, password: \"${env:S}\" }" + more);
    if (!loaded) return false;
    return std::any_of(loaded->warnings.begin(), loaded->warnings.end(), [](const ConfigError& warning) {
      return warning.what.find("logs in to kafka:1 without TLS: everybody on the way can read its password") !=
             std::string::npos;
    });
  };
  EXPECT_TRUE(warns("kafka", ""));
  EXPECT_FALSE(warns("kafka", ", tls: true"));
  EXPECT_FALSE(warns("127.0.0.1", ""));
}

TEST(Sinks, WebhookTakesSecretsNewOneFirst) {
  const auto settings = settings_of<sinks::WebhookSettings>(sink(
      R"(type: webhook, url: "https://h/x", secret: "${env:S}", secrets: [old], headers: { Authorization: "${env:S}" }, total_timeout: 3s)"));
  EXPECT_EQ(settings.secrets, (std::vector<std::string>{"canary-1", "old"}));
  EXPECT_EQ(settings.headers.at("Authorization"), "canary-1");
  EXPECT_EQ(settings.total_timeout, std::chrono::milliseconds(3'000));
}

constexpr const char* kHook = R"(type: webhook, url: "https://h/x", secret: "0123456789abcdef")";

TEST(Sinks, WebhookTakesItsModeWithBoundsAndItsFiles) {
  const auto settings = settings_of<sinks::WebhookSettings>(
      sink(std::string(kHook) +
           ", mode: batch, batch: { max_events: 10, max_bytes: 64KiB }, ca_file: /ca, cert_file: /c, key_file: /k"));
  EXPECT_EQ(settings.mode, sinks::WebhookMode::batch);
  EXPECT_EQ(settings.batch, (sinks::WebhookBatch{10, 64 << 10}));
  EXPECT_EQ(settings.tls, (sinks::TlsPaths{"/ca", "/c", "/k"}));
  const auto plain = settings_of<sinks::WebhookSettings>(sink(kHook));
  EXPECT_EQ(plain.mode, sinks::WebhookMode::structured);
  EXPECT_EQ(settings_of<sinks::WebhookSettings>(sink(std::string(kHook) + ", mode: binary")).mode,
            sinks::WebhookMode::binary);
}

TEST(Sinks, WebhookSettingsThatWouldNotDoWhatTheySayAreRefused) {
  const auto says = [](const std::string& more, const std::string& expected) {
    const std::string text = refused(std::string(kHook) + ", " + more);
    EXPECT_NE(text.find(expected), std::string::npos) << more << ": " << text;
  };
  says("mode: compact", "structured");
  says("batch: { max_events: 10 }", "only used with 'mode: batch'");
  says("mode: batch, batch: { max_events: 1 }", "max_events");
  says("mode: batch, batch: { max_events: 257 }", "max_events");
  says("mode: batch, batch: { max_bytes: 1KiB }", "max_bytes");
  says("mode: batch, batch: { max_bytes: 17MiB }", "at most 16MiB");
  says("mode: batch, batch: { events: 10 }", "unknown key 'events'");
  says("cert_file: /c", "only one of 'cert_file' and 'key_file'");
  says("key_file: /k", "only one of 'cert_file' and 'key_file'");
  says("proxy: \"http://p:1\"", "proxy_trusted: true");
  says("proxy_trusted: true", "no 'proxy' to trust");
  EXPECT_EQ(refused(std::string(kHook) + ", proxy: \"http://p:1\", proxy_trusted: true"), "accepted");
}

TEST(Sinks, FileAndStdoutShareTheirSettings) {
  EXPECT_EQ(settings_of<sinks::FileSettings>(sink("type: file, path: /x, rotate: 1MiB, keep: 2")).rotate_bytes,
            1 << 20);
  EXPECT_TRUE(settings_of<sinks::FileSettings>(sink("type: stdout")).path.empty());
  settings_of<sinks::NotificationsSettings>(sink("type: notifications"));
}

TEST(Sinks, PluginTakesItsOwnKeysAndPassesItsSettingsOnWithTokens) {
  const auto loaded = sink(R"(type: plugin, plugin: syslog, timeout: 5s, max_events: 10, max_calls: 2, retry: schedule,
      budgets: { rss: 64MiB, files: 64 }, settings: { address: "h:6514", password: "${env:S}", anything: [1] })");
  const auto settings = settings_of<sinks::PluginSettings>(loaded);
  EXPECT_EQ(settings.plugin, "syslog");
  EXPECT_EQ(settings.timeout, std::chrono::seconds(5));
  EXPECT_TRUE(settings.max_events == 10 && settings.max_calls == 2 && settings.retry == sinks::PluginRetry::schedule);
  EXPECT_TRUE(settings.budgets.rss_bytes == 64 << 20 && settings.budgets.files == 64);
  EXPECT_NE(settings.settings_json.find(R"("address":"h:6514","anything":[1])"), std::string::npos);
  EXPECT_EQ(settings.settings_json.find("canary"), std::string::npos) << "a secret is a token";
  ASSERT_EQ(settings.secrets.size(), 1u);
  EXPECT_EQ(settings.secrets.begin()->second, "canary-1");
}

TEST(Sinks, PluginRefusesWhatItCannotUse) {
  EXPECT_NE(refused("type: plugin").find("plugin"), std::string::npos);
  EXPECT_NE(refused("type: plugin, plugin: x, address: h").find("'address'"), std::string::npos);
  EXPECT_NE(refused("type: plugin, plugin: x, settings: [1]").find("a map, see the plugin's README"),
            std::string::npos);
  EXPECT_NE(refused("type: plugin, plugin: x, budgets: { records: 1 }").find("'records'"), std::string::npos);
  EXPECT_NE(refused("type: plugin, plugin: x, retry: never").find("forever"), std::string::npos);
  EXPECT_NE(refused("type: plugin, plugin: x, max_events: 257").find("256"), std::string::npos);
}

TEST(Sinks, EachButTheDecidersMayGetEventsWithoutValues) {
  for (const char* type : {"type: stdout", "type: file, path: /x", "type: nats, servers: [\"nats://h:1\"]"}) {
    EXPECT_TRUE(sink(std::string(type) + ", events: digests_only")->sinks.at(0).digests_only) << type;
    EXPECT_FALSE(sink(type)->sinks.at(0).digests_only) << type;
  }
  EXPECT_NE(refused("type: notifications, events: digests_only").find("unknown key 'events'"), std::string::npos);
  EXPECT_NE(refused("type: stdout, events: digests").find("digests_only"), std::string::npos);
}

TEST(Redact, ABackendsOwnRulesStandBeforeThoseOfTheDefaultsAndHidingBeforeShowing) {
  const auto loaded = parse(R"(defaults: { redact: { show: [team], hide: [d] } }
backends: [{ name: a, provider: redis, redact: { show: ["containers.*.env.X"], hide: [b] } }, { name: b, provider: redis }]
)",
                            "driftd.yaml", {});
  ASSERT_TRUE(loaded) << render(loaded.error());
  using Rules = std::vector<core::RedactRule>;
  EXPECT_EQ(loaded->backends.at(0).redact,
            (Rules{{false, "b"}, {true, "containers.*.env.X"}, {false, "d"}, {true, "team"}}));
  EXPECT_EQ(loaded->backends.at(1).redact, (Rules{{false, "d"}, {true, "team"}}));
  const auto wrong = parse("backends: [{ name: a, provider: redis, redact: { show: ['a..b'] } }]\n", "driftd.yaml", {});
  ASSERT_FALSE(wrong);
  EXPECT_NE(render(wrong.error()).find("path 'a..b' is not valid"), std::string::npos);
}

TEST(Sinks, MistakesAreFoundAtTheirPlace) {
  const auto has = [](const std::string& text, const std::string& message) {
    EXPECT_NE(refused(text).find(message), std::string::npos) << refused(text);
  };
  has(R"(type: webhook, url: "http://h", secret: "${env:S}")", "driftd.yaml:1:35: 'url' of sink 's' is not https");
  has(R"(type: webhook, url: "https://h")", "has no 'secret'");
  has("type: file", "has no 'path'");
  has("type: nats, severs: [a]", "did you mean 'servers'?");
  has("type: nats, servers: []", "has no servers");
  has("type: nats, tls: { cert: a }", "only one of 'cert' and 'key'");
  has("type: stdout, path: /x", "unknown key 'path'");
}

std::vector<std::string> warnings(const std::string& text) {
  const auto loaded = sink(text);
  std::vector<std::string> out;
  if (!loaded) return {render(loaded.error())};
  for (const auto& warning : loaded->warnings) {
    if (warning.what.find("clear text: everybody") != std::string::npos ||
        warning.what.find("loopback") != std::string::npos) {
      out.push_back(render(warning));
    }
  }
  return out;
}

TEST(Sinks, APasswordThatGoesOverTheNetworkInClearTextIsWarnedOfOnce) {
  const auto said = warnings(
      R"(type: nats, servers: ["nats://a.example:4222", "nats://b.example:4222"], user: u, password: "${env:S}")");
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("sink 's' sends its password or token to a.example in clear text"), std::string::npos)
      << said[0];
  EXPECT_NE(said[0].find("tls: true"), std::string::npos) << said[0];
  EXPECT_EQ(warnings(R"(type: nats, servers: ["a.example:4222"], token: "${env:S}")").size(), 1U);
  const auto in_the_url = warnings(R"(type: nats, servers: ["nats://u:canary-2@w@[2001:db8::1]:4222"])");
  ASSERT_EQ(in_the_url.size(), 1U);
  EXPECT_NE(in_the_url[0].find("to 2001:db8::1 in"), std::string::npos) << in_the_url[0];
  EXPECT_EQ(in_the_url[0].find("canary"), std::string::npos);
}

TEST(Sinks, WhatNobodyCanReadOnTheWayIsNotWarnedOf) {
  for (const std::string servers :
       {R"(["nats://127.0.0.1:4222", "nats://[::1]:4222", "localhost"])", R"(["tls://a.example:4222"])"}) {
    EXPECT_TRUE(warnings("type: nats, servers: " + servers + R"(, user: u, password: "${env:S}")").empty()) << servers;
  }
  EXPECT_TRUE(
      warnings(R"(type: nats, servers: ["nats://a.example"], user: u, password: "${env:S}", tls: true)").empty());
  EXPECT_TRUE(warnings(R"(type: nats, servers: ["nats://a.example"], credentials_file: /x.creds)").empty());
  EXPECT_TRUE(warnings(R"(type: nats, servers: ["nats://a.example"])").empty());
}

TEST(Sinks, PlainHttpToAHostThatIsNotLoopbackIsWarnedOf) {
  const std::string rest = R"(, secret: "${env:S}", allow_http_loopback: true)";
  EXPECT_EQ(warnings(R"(type: webhook, url: "http://hooks.example/x")" + rest).size(), 1U);
  EXPECT_TRUE(warnings(R"(type: webhook, url: "http://127.0.0.1:8080/x")" + rest).empty());
}

TEST(Sinks, AWebhookSendsMessagesInAFormat) {
  const auto warnings = [](const Loaded& loaded) {
    return loaded ? render(loaded->warnings) : "refused: " + render(loaded.error());
  };
  LoadOptions options;
  options.environment = [](const std::string&) {
    return std::optional<std::string>("https://hooks.example/T0/canary");
  };
  const auto loaded =
      parse("sinks: { s: { type: webhook, url: \"${env:U}\", format: slack } }\n", "driftd.yaml", options);
  const auto settings = settings_of<sinks::WebhookSettings>(loaded);
  EXPECT_EQ(settings.chat.format, sinks::ChatFormat::slack);
  EXPECT_EQ(settings.chat.layout.kind, sinks::ChatNode::Kind::map);
  EXPECT_EQ(warnings(loaded).find("sink 's'"), std::string::npos)
      << "the chat checks no signature: no secret is missing";
  const auto plain = sink("type: webhook, url: \"https://hooks.example/T0/B0/canary\", format: teams");
  EXPECT_NE(warnings(plain).find("driftd.yaml:1:35: 'url' of sink 's' stands here in clear text"), std::string::npos)
      << warnings(plain);
  EXPECT_EQ(warnings(plain).find("canary"), std::string::npos);
}

TEST(Sinks, AFormatThatCannotBeUsedIsNamed) {
  const std::string hook = "type: webhook, url: \"${env:S}\", ";
  const std::pair<std::string, std::string> mistakes[] = {
      {hook + "format: slak", "found 'slak'"},
      {hook + "format: generic", "sink 's' has no 'secret'"},
      {hook + "format: slack, mode: binary", "'mode' of sink 's' is not used with a 'format'"},
      {hook + "secret: \"${env:S}\", template: a.yaml", "'template' of sink 's' is only used with a 'format'"},
      {hook + "format: slack, template: not-there.yaml", "not-there.yaml cannot be read"},
      {hook + "format: slack, template: /", "is not a regular file"},
  };
  for (const auto& [text, expected] : mistakes) {
    EXPECT_NE(refused(text).find(expected), std::string::npos) << text << "\n" << refused(text);
    EXPECT_EQ(refused(text).find("driftd.yaml:1:"), 0u) << refused(text);
  }
}

}  // namespace
}  // namespace driftd::config
