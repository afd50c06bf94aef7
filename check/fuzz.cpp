// SPDX-License-Identifier: Apache-2.0
#include "check/fuzz.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "check/address.hpp"
#include "check/listing.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

/// Makes random values that fit a schema.
class Maker {
 public:
  Maker(const std::vector<std::string>& tokens, std::mt19937_64& random) : tokens_(tokens), random_(random) {}

  Json value(const Json& schema, int depth) {
    if (!schema.is_object()) return text();
    if (schema.contains("enum") && !schema["enum"].empty())
      return schema["enum"][below(random_, schema["enum"].size())];
    if (schema.contains("const")) return schema["const"];
    if (schema.value("writeOnly", false)) return token();
    for (const char* many : {"anyOf", "oneOf"}) {
      if (schema.contains(many) && !schema.contains("type") && !schema[many].empty()) {
        return value(schema[many][below(random_, schema[many].size())], depth);
      }
    }
    Json type = schema.value("type", Json("string"));
    if (type.is_array() && !type.empty()) type = type[below(random_, type.size())];
    return of_type(type.is_string() ? type.get<std::string>() : "string", schema, depth);
  }

  /// Replaces some members of an object, adds some and removes some.
  void change(const Json& schema, Json& object) {
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, property] : properties.items()) {
      const auto dice = below(random_, 10);
      if (dice < 4) continue;
      if (dice == 4) {
        object.erase(key);
      } else if (dice == 5 && object.contains(key) && object[key].is_object()) {
        change(property, object[key]);
      } else {
        object[key] = value(property, 0);
      }
    }
  }

 private:
  Json of_type(const std::string& type, const Json& schema, int depth) {
    if (type == "boolean") return below(random_, 2) == 0;
    if (type == "integer" || type == "number") return number(schema, type == "integer");
    if (type == "null") return nullptr;
    if (type == "array") {
      Json out = Json::array();
      const auto n = depth > 3 ? 0 : below(random_, 10) == 0 ? 300 : below(random_, 4);
      for (std::size_t i = 0; i < n; ++i) out.push_back(value(schema.value("items", Json::object()), depth + 1));
      return out;
    }
    if (type == "object") {
      Json out = Json::object();
      if (depth <= 3) change(schema, out);
      return out;
    }
    return text();
  }

  Json number(const Json& schema, bool integer) {
    const auto least = schema.value("minimum", std::numeric_limits<std::int64_t>::min());
    const auto maximum = schema.value("maximum", std::numeric_limits<std::int64_t>::max());
    switch (below(random_, 6)) {
      case 0:
        return least;
      case 1:
        return maximum;
      case 2:
        return std::max<std::int64_t>(least, 0);
      case 3:
        return integer ? Json(std::min<std::int64_t>(maximum, 1)) : Json(0.5);
      default:
        return least + static_cast<std::int64_t>(random_() % 1000);
    }
  }

  Json token() { return tokens_.empty() ? Json("") : Json(tokens_[below(random_, tokens_.size())]); }

  /// Returns texts that no resolver would look up, because providers may connect as soon as they are opened.
  std::string text() {
    static const std::vector<std::string> kTexts = {"",
                                                    " ",
                                                    "127.0.0.1:1",
                                                    "[::1]:1",
                                                    "127.0.0.1:",
                                                    ":1",
                                                    "127.0.0.1:99999",
                                                    "[::1",
                                                    "unix:",
                                                    "unix:/nonexistent",
                                                    "/",
                                                    "/nonexistent/file",
                                                    "../../..",
                                                    "http://127.0.0.1:1/",
                                                    "http://",
                                                    "**",
                                                    "*/*",
                                                    "[a-",
                                                    "topic/*",
                                                    "%s%n%x",
                                                    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xbb",
                                                    "'; --",
                                                    "${env:X}",
                                                    "\"\\\n\t",
                                                    "0",
                                                    "-1",
                                                    "true",
                                                    "null"};
    const auto dice = below(random_, kTexts.size() + 3);
    if (dice < kTexts.size()) return kTexts[dice];
    if (dice == kTexts.size()) return "/" + random_word(random_, 70'000);
    return "127.0.0.1:" + std::to_string(below(random_, 2));
  }

  const std::vector<std::string>& tokens_;
  std::mt19937_64& random_;
};

void plant(const Json& schema, Json& object, std::mt19937_64& random, std::map<std::string, std::string>& tokens) {
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [key, property] : properties.items()) {
    if (!property.is_object()) continue;
    if (property.value("writeOnly", false)) {
      const std::string token = "planted-token-" + random_word(random, 16);
      tokens[token] = random_word(random, 10) + "+/&=\"" + random_word(random, 12);
      object[key] = token;
    } else if (object.contains(key) && object[key].is_object()) {
      plant(property, object[key], random, tokens);
    }
  }
}

}  // namespace

SettingsFuzz::SettingsFuzz(std::string schema_json, std::string given_json, std::vector<std::string> tokens,
                           std::mt19937_64& random)
    : schema_(std::move(schema_json)),
      given_(std::move(given_json)),
      tokens_(std::move(tokens)),
      random_(random) {}

std::string SettingsFuzz::next() {
  const Json schema = Json::parse(schema_, nullptr, false);
  Maker maker(tokens_, random_);
  for (int tries = 0; tries < 100; ++tries) {
    Json settings =
        below(random_, 4) == 0 ? Json::object() : Json::parse(given_.empty() ? "{}" : given_, nullptr, false);
    if (!settings.is_object()) settings = Json::object();
    maker.change(schema, settings);
    std::string text = settings.dump();
    const auto errors = ipc::validate_settings(schema_, text);
    if (errors && errors->empty()) return text;
  }
  return {};
}

std::string plant_tokens(const std::string& schema_json, const std::string& given_json, std::mt19937_64& random,
                         std::map<std::string, std::string>& tokens) {
  Json settings = Json::parse(given_json.empty() ? "{}" : given_json, nullptr, false);
  plant(Json::parse(schema_json, nullptr, false), settings, random, tokens);
  return settings.dump();
}

}  // namespace driftd::check
