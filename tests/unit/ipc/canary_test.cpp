// SPDX-License-Identifier: Apache-2.0
// Puts a marker into every setting of every provider, by reference. Whatever the plugin reports with it, the marker is
// removed.
#include <gmock/gmock.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/value/value.hpp"
#include "ipc/settings_schema.hpp"
#include "ipc/text.hpp"

namespace driftd::ipc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json schema_of(const std::string& provider) {
  std::ifstream in(std::string(DRIFTD_SOURCE_DIR) + "/plugins/" + provider + "/schema.json");
  return json::parse(in).at("settings");
}

/// Returns settings with a token in each place where the schema accepts text; `planted` maps the tokens to the places.
json plant(const json& schema, const std::string& path, std::map<std::string, std::string>& planted) {
  for (const char* alternatives : {"oneOf", "anyOf"}) {
    if (!schema.contains("type") && schema.contains(alternatives)) return plant(schema[alternatives][0], path, planted);
  }
  const json type = schema.value("type", json());
  const auto is = [&](const char* name) {
    return type == name || (type.is_array() && std::find(type.begin(), type.end(), name) != type.end());
  };
  if (is("object")) {
    json out = json::object();
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, member] : properties.items()) {
      if (json value = plant(member, path + "." + name, planted); !value.is_null()) out[name] = std::move(value);
    }
    const auto rest = schema.find("additionalProperties");
    if (rest != schema.end() && rest->is_object()) out["any"] = plant(*rest, path + ".any", planted);
    return out;
  }
  if (is("array"))
    return schema.contains("items") ? json::array({plant(schema["items"], path + "[]", planted)}) : json::array();
  if (!is("string")) return json();
  const std::string token = "driftd-secret-" + std::to_string(100 + planted.size()) + "x";
  planted[token] = path;
  return token;
}

class Canary : public testing::TestWithParam<const char*> {};

TEST_P(Canary, InEverySettingStaysInside) {
  const json schema = schema_of(GetParam());
  std::map<std::string, std::string> planted, secrets;
  std::string settings = plant(schema, "settings", planted).dump();
  ASSERT_GT(planted.size(), 8u) << "the schema's settings were not found";
  for (const auto& [token, path] : planted) secrets[token] = "canary!" + token.substr(14);
  ASSERT_TRUE(resolve_plain_settings(settings, secrets, schema.dump()));
  const Scrubber scrubber = Scrubber::of_instance(secrets, settings);
  for (const auto& [token, path] : planted) {
    const std::string& canary = secrets.at(token);
    const std::string encoded = "canary%21" + token.substr(14);
    for (const auto& said :
         {canary, "no such thing: '" + canary + "'", "GET https://h/" + encoded, R"({"asked":")" + canary + "\"}"}) {
      EXPECT_THAT(scrubber.text(said), Not(HasSubstr("canary"))) << path;
    }
  }
}

TEST_P(Canary, InUserInfoAndQueryOfEverySettingStaysInside) {
  const json schema = schema_of(GetParam());
  std::map<std::string, std::string> planted, secrets;
  std::string settings = plant(schema, "settings", planted).dump();
  for (const auto& [token, path] : planted) {
    secrets[token] =
        "x://app:canary-p%21" + token.substr(14) + "@db.example:1/?private_token=canary-q" + token.substr(14);
  }
  ASSERT_TRUE(resolve_plain_settings(settings, secrets, schema.dump()));
  const Scrubber scrubber = Scrubber::of_instance(secrets, settings);
  for (const auto& [token, path] : planted) {
    const std::string number = token.substr(14);
    for (const auto& said : {secrets.at(token), "password canary-p%21" + number, "password canary-p!" + number,
                             "token canary-q" + number}) {
      EXPECT_THAT(scrubber.text(said), Not(HasSubstr("canary"))) << path;
      EXPECT_THAT(scrubber.document(core::render(core::Value(said))), Not(HasSubstr("canary"))) << path;
    }
    EXPECT_THAT(displayed_setting(secrets.at(token)), Not(HasSubstr("canary"))) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, Canary,
                         testing::Values("k8s", "kafka", "keycloak", "postgres", "redis", "terraform"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace driftd::ipc
