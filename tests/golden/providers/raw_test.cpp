// SPDX-License-Identifier: Apache-2.0
// Classes of false drift that a provider settles before the host compares: what the system answered, through the
// provider's own mapping and schema. elsewhere.json of the table names the test of each class.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "k8s/kinds.hpp"
#include "k8s/mapping.hpp"
#include "kafka/mapping.hpp"
#include "redis/acl.hpp"

namespace driftd::core {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<const KindSchema> schema_of(const std::string& provider, const std::string& kind) {
  std::ostringstream text;
  text << std::ifstream(std::string(DRIFTD_SOURCE_DIR) + "/plugins/" + provider + "/schema.json").rdbuf();
  auto schema = KindSchema::parse(json::parse(text.str()).at("kinds").at(kind).dump());
  if (!schema) throw std::runtime_error(schema.error().message);
  return *schema;
}

std::vector<std::string> changed(const std::string& provider, const std::string& kind, const sdk::Record& before,
                                 const sdk::Record& after) {
  std::vector<std::string> out;
  const auto difference = diff(parse(before.body).value(), parse(after.body).value(), *schema_of(provider, kind), {});
  for (const auto& change : difference.changes) out.push_back(change.path);
  return out;
}

const redis::AclCategories kCategories = {{"read", {"get", "mget"}},
                                          {"write", {"set"}},
                                          {"dangerous", {"config|get", "config|set", "flushall"}},
                                          {"slow", {"config|get", "config|set", "flushall"}},
                                          {"fast", {"get", "mget", "set"}}};

/// Changes of an ACL user that neither the schema nor the provider's own verdict calls the same.
std::vector<std::string> acl(const std::string& before, const std::string& after) {
  const auto record = [](const std::string& line) {
    return redis::acl_record(redis::parse_acl_line(line), kCategories, {});
  };
  const auto paths = changed("redis", "acl_user", record(before), record(after));
  std::vector<redis::AclChange> asked;
  for (std::uint32_t i = 0; i < paths.size(); ++i) asked.push_back({i, paths[i]});
  std::vector<std::string> out = paths;
  for (const auto& [index, why] : redis::equivalent_acl_changes(asked)) std::erase(out, paths[index]);
  return out;
}

TEST(RawClass22, KeysOfAConfigMapAreTheirBlobsAndOptions) {
  const k8s::Settings settings;
  const auto resources = k8s::known_resources(settings);
  const auto map =
      std::find_if(resources.begin(), resources.end(), [](const auto& r) { return r.kind == "config_map"; });
  ASSERT_NE(map, resources.end());
  const auto mapped = [&](const char* name, const std::string& text) {
    const json object = {
        {"metadata", {{"name", "bastion"}, {"namespace", "prod"}, {"uid", "u"}, {"resourceVersion", "1"}}},
        {"data", {{name, text}}}};
    return k8s::map_object(*map, object, settings);
  };
  const std::string a = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFgioSfdGQSjkxOZrhrZemCV+p11MGdCLt34rPkb94y/",
                    b = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP9ctueQRY85DwHRDwrHy+MYjcuhMme5kWRrLMRa3sIa";
  for (const char* name : {"authorized_keys", "alice.pub"}) {
    EXPECT_THAT(
        changed("k8s", "config_map", mapped(name, a + " alice@old\n" + b), mapped(name, b + "\n" + a + " alice@new\n")),
        IsEmpty());
    EXPECT_THAT(changed("k8s", "config_map", mapped(name, a + " alice\n" + b), mapped(name, a + " alice\n")),
                SizeIs(1));
    EXPECT_THAT(changed("k8s", "config_map", mapped(name, a), mapped(name, "no-pty " + a)), SizeIs(1));
  }
  EXPECT_THAT(changed("k8s", "config_map", mapped("notes", a + " x"), mapped("notes", a + " y")), SizeIs(1))
      << "plain text";
}

TEST(RawClass34, StringDataAndBase64AreTheBytesOfASecret) {
  const k8s::Settings settings;
  const auto resources = k8s::known_resources(settings);
  const auto secret =
      std::find_if(resources.begin(), resources.end(), [](const auto& r) { return r.kind == k8s::kSecret; });
  ASSERT_NE(secret, resources.end());
  const auto mapped = [&](const std::string& base64) {
    const json object = {{"metadata", {{"name", "db"}, {"namespace", "prod"}, {"uid", "u"}, {"resourceVersion", "1"}}},
                         {"type", "Opaque"},
                         {"data", {{"password", base64}}}};
    return k8s::map_object(*secret, object, settings);
  };
  EXPECT_THAT(changed("k8s", "secret", mapped("aHVudGVyMg=="), mapped("aHVudGVyMg==")), IsEmpty());
  EXPECT_THAT(changed("k8s", "secret", mapped("aHVudGVyMg=="), mapped("aHVudGVyMw==")), ElementsAre("data.password"));
  EXPECT_THAT(json::parse(mapped("aHVudGVyMg==").body).at("data").at("password"), "hunter2") << "what stringData wrote";
}

TEST(RawClass35, PrivilegeMacrosAreWhatTheyAllow) {
  const std::string user = "user app on #aa ~* &* ";
  EXPECT_THAT(acl(user + "+@all -@dangerous", user + "+@all -config|get -config|set -flushall"), IsEmpty());
  EXPECT_THAT(acl(user + "-@all +get +mget", user + "-@all +@read"), IsEmpty());
  EXPECT_THAT(acl(user + "-@all +@read", user + "-@all +@read +set"), testing::Not(IsEmpty()));
  EXPECT_THAT(acl(user + "+@all -@dangerous", user + "+@all"), testing::Not(IsEmpty()));
}

TEST(RawClass36, AliasesAndTheOrderOfPatternsSayTheSame) {
  EXPECT_THAT(acl("user app on #aa allkeys &* +@all", "user app on #aa ~* &* +@all"), IsEmpty());
  EXPECT_THAT(acl("user app on #aa ~a* ~b* &* +@all", "user app on #aa ~b* ~a* &* +@all"), IsEmpty());
  EXPECT_THAT(acl("user app on #aa ~* &* +@all", "user app on #aa ~a* &* +@all"), ElementsAre("keys"));
  const kafka::Acl prefixed{"User:app", "*", "Read", "Allow", "Topic", "orders", "Prefixed"};
  kafka::Acl literal = prefixed;
  literal.pattern = "Literal";
  EXPECT_NE(kafka::acl_id(prefixed), kafka::acl_id(literal)) << "another binding, not a spelling";
}

TEST(RawClass38, AliasKeysResolveToTheKeyInForce) {
  kafka::Broker broker;
  broker.id = 1;
  const auto mapped = [&](const std::string& in_force, std::vector<kafka::ConfigEntry> synonyms) {
    kafka::Configs configs;
    configs.entries.push_back({"log.retention.ms", in_force, kafka::Source::fixed, false, std::move(synonyms)});
    return kafka::map_broker(broker, configs);
  };
  const kafka::ConfigEntry hours{"log.retention.hours", "168", kafka::Source::builtin, false, {}};
  EXPECT_THAT(changed("kafka", "broker", mapped("604800000", {hours}), mapped("604800000", {})), IsEmpty());
  EXPECT_THAT(changed("kafka", "broker", mapped("604800000", {hours}), mapped("3600000", {hours})),
              testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace driftd::core
