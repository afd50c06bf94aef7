// SPDX-License-Identifier: Apache-2.0
// Group schema, part 1: how a provider describes itself. Part 2 is group_schema_calls.cpp.
#include "check/group_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "check/listing.hpp"
#include "core/value/schema.hpp"
#include "ipc/settings_schema.hpp"
#include "ipc/text.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDocumentBytes = 1u << 20;

/// Asks for a document twice, on different threads, and returns it. Exactly one must be pushed each time.
std::string document(const std::string& name, const CallTrace& first, const CallTrace& second) {
  for (const CallTrace* trace : {&first, &second}) {
    if (trace->threw) throw RuleBroken(name + ": an exception crossed the border");
    if (trace->status != DRIFTD_OK || trace->pushed.size() != 1) {
      throw RuleBroken(fmt::format("{} answered {} and pushed {} documents; expected OK and one", name, trace->status,
                                   trace->pushed.size()));
    }
  }
  const std::string& text = first.pushed.front();
  if (text.size() > kMaxDocumentBytes)
    throw RuleBroken(fmt::format("{} pushed {} bytes, at most 1 MiB", name, text.size()));
  if (!ipc::is_utf8(text)) throw RuleBroken(name + " pushed what is not UTF-8");
  if (text != second.pushed.front()) throw RuleBroken(name + " pushed something else the second time; it is [pure]");
  return text;
}

Json object(const std::string& name, const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw RuleBroken(name + " pushed no JSON object: " + ipc::printable(text.substr(0, 120), 120));
  return json;
}

void text_member(const Json& describe, const char* member) {
  const auto found = describe.find(member);
  if (found == describe.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
    throw RuleBroken(fmt::format("describe: `{}` must be a text that is not empty", member));
  }
}

std::vector<std::string> names(const Json& describe, const char* member) {
  const auto found = describe.find(member);
  if (found == describe.end() || !found->is_array() || found->empty()) {
    throw RuleBroken(fmt::format("describe: `{}` must be a list of at least one name", member));
  }
  std::vector<std::string> out;
  for (const auto& item : *found) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      throw RuleBroken(fmt::format("describe: `{}` has an element that is no name: {}", member, item.dump()));
    }
    auto name = item.get<std::string>();
    if (std::find(out.begin(), out.end(), name) != out.end()) {
      throw RuleBroken(fmt::format("describe: `{}` names {} twice", member, item.dump()));
    }
    out.push_back(std::move(name));
  }
  return out;
}

/// Expects an optional list of objects with these members. All are texts except `revision`.
void objects(const Json& describe, const char* list, std::initializer_list<const char*> members) {
  const auto found = describe.find(list);
  if (found == describe.end()) return;
  if (!found->is_array()) throw RuleBroken(fmt::format("describe: `{}` must be a list", list));
  for (const auto& item : *found) {
    for (const char* member : members) {
      const bool number = std::strcmp(member, "revision") == 0;
      const bool right = item.is_object() && item.contains(member) &&
                         (number ? item[member].is_number_unsigned() : item[member].is_string());
      if (!right)
        throw RuleBroken(fmt::format("describe: an element of `{}` has no {} `{}`: {}", list,
                                     number ? "number" : "text", member, item.dump()));
    }
  }
}

void describe(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const Json json = object("describe", document("describe", provider.describe(), provider.describe()));
  text_member(json, "id");
  text_member(json, "version");
  (void)names(json, "types");
  for (const auto& kind : names(json, "kinds")) {
    if (kind == "settings")
      throw RuleBroken("describe: a kind cannot be called `settings`: schema(\"settings\") is taken");
  }
  objects(json, "metrics", {"name", "unit"});
  objects(json, "extensions", {"id", "revision"});
  if (const auto found = json.find("concurrency"); found != json.end()) {
    if (!found->is_number_integer() || *found < 1 || *found > 64) {
      throw RuleBroken(fmt::format("describe: `concurrency` must be 1 to 64, found {}", found->dump()));
    }
  }
  if (json.contains("diff") && !json["diff"].is_boolean()) throw RuleBroken("describe: `diff` must be true or false");
}

/// Rejects keywords that the host does not follow: settings behind them would not be validated, and secret ones would
/// not become tokens.
void understood(const Json& schema, const std::string& path) {
  static constexpr std::array<const char*, 13> kUnknown = {"$ref",
                                                           "$dynamicRef",
                                                           "allOf",
                                                           "not",
                                                           "if",
                                                           "then",
                                                           "else",
                                                           "patternProperties",
                                                           "dependentSchemas",
                                                           "propertyNames",
                                                           "prefixItems",
                                                           "contains",
                                                           "unevaluatedProperties"};
  if (schema.is_boolean()) return;
  if (!schema.is_object()) throw RuleBroken(fmt::format("schema(\"settings\"): `{}` is no schema", path));
  for (const char* keyword : kUnknown) {
    if (schema.contains(keyword)) {
      throw RuleBroken(
          fmt::format("schema(\"settings\"): `{}` uses `{}`, which the host does not follow; write it out with "
                      "properties, items, anyOf or oneOf",
                      path, keyword));
    }
  }
  static constexpr std::array<const char*, 7> kTypes = {"string", "integer", "number", "boolean",
                                                        "object", "array",   "null"};
  const Json type = schema.value("type", Json("string"));
  for (const auto& one : type.is_array() ? type : Json::array({type})) {
    if (std::find(kTypes.begin(), kTypes.end(), one) == kTypes.end()) {
      throw RuleBroken(
          fmt::format("schema(\"settings\"): `{}` has the type {}, which JSON does not have", path, one.dump()));
    }
  }
  if (schema.value("writeOnly", false) && type != "string") {
    throw RuleBroken(fmt::format("schema(\"settings\"): `{}` is writeOnly and no string; a token is a string", path));
  }
  const Json properties = schema.value("properties", Json::object());
  if (!properties.is_object())
    throw RuleBroken(fmt::format("schema(\"settings\"): `{}.properties` is not an object", path));
  for (const auto& item : properties.items()) understood(item.value(), path + "." + item.key());
  for (const char* one : {"items", "additionalProperties"}) {
    if (schema.contains(one)) understood(schema[one], path + "." + one);
  }
  for (const char* many : {"anyOf", "oneOf"}) {
    const Json alternatives = schema.value(many, Json::array());
    if (!alternatives.is_array())
      throw RuleBroken(fmt::format("schema(\"settings\"): `{}.{}` is not a list", path, many));
    for (const auto& one : alternatives) understood(one, path + "." + many);
  }
}

void settings(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const std::string name = "schema(\"settings\")";
  const std::string text = document(name, provider.schema("settings"), provider.schema("settings"));
  const Json schema = object(name, text);
  if (schema.value("type", Json("object")) != "object") {
    throw RuleBroken(fmt::format("{}: expected the type object, found {}", name, schema["type"].dump()));
  }
  understood(schema, "settings");
  for (const std::string& given :
       {std::string("{}"), subject.settings_json, std::string(R"({"no-such-setting":[1]})")}) {
    if (given.empty()) continue;
    const auto errors = ipc::validate_settings(text, given);
    if (!errors) throw RuleBroken(errors.error().message);
  }
}

void each_kind(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const Json json = object("describe", document("describe", provider.describe(), provider.describe()));
  for (const auto& kind : names(json, "kinds")) {
    const std::string name = "schema(\"" + kind + "\")";
    const std::string text = document(name, provider.schema(kind), provider.schema(kind));
    const auto schema = core::KindSchema::parse(text);
    if (!schema) throw RuleBroken(name + ": " + schema.error().message);
    if ((*schema)->kind() != kind)
      throw RuleBroken(fmt::format("{} says that it is of kind `{}`", name, (*schema)->kind()));
  }
}

void meaning(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  for (const auto& kind : provider.info().kinds) {
    const std::string name = "schema(\"" + kind + "\")";
    const auto schema = core::KindSchema::parse(document(name, provider.schema(kind), provider.schema(kind)));
    const Status means = schema ? (*schema)->check() : Status(fail(schema.error()));
    if (!means) throw RuleBroken(name + ": " + means.error().message);
  }
}

void unknown(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const auto& known = provider.info().kinds;
  auto random = random_of(subject, "schema.unknown");
  std::vector<std::string> others{"",
                                  "no-such-kind",
                                  "settings" + std::string(1, '\0'),
                                  "setting",
                                  random_word(random, 100'000),
                                  random_bytes(random, 64)};
  for (const auto& kind : known) others.insert(others.end(), {kind + ".", kind.substr(0, kind.size() - 1) + '\x01'});
  for (const auto& what : others) {
    if (std::find(known.begin(), known.end(), what) != known.end()) continue;
    const CallTrace trace = provider.schema(what);
    if (trace.status == DRIFTD_NOT_FOUND && trace.pushed.empty() && !trace.threw) continue;
    throw RuleBroken(fmt::format("schema(\"{}\") answered {} and pushed {} documents; expected NOT_FOUND and none",
                                 ipc::printable(what.substr(0, 40), 40), trace.status, trace.pushed.size()));
  }
}

using std::chrono::seconds;
constexpr Check kSchemaChecks[] = {
    {"schema.describe", Level::must, "describe is one JSON object with what the host needs, the same each time",
     seconds(20), &describe},
    {"schema.settings", Level::must, "the settings have a JSON Schema that the host understands", seconds(20),
     &settings},
    {"schema.kinds", Level::must, "each declared kind has a driftd-schema/1 document of its name, the same each time",
     seconds(20), &each_kind},
    {"schema.meaning", Level::should, "each rule of a kind's schema can mean what it says", seconds(20), &meaning},
    {"schema.unknown", Level::must, "another name is NOT_FOUND and pushes nothing", seconds(20), &unknown},
    {"schema.bodies", Level::must,
     "bodies and status are JSON objects that can be compared, under 4 MiB, of a declared kind", seconds(100), &bodies},
    {"schema.text", Level::must, "every text is UTF-8 and within its limit", seconds(100), &text},
    {"schema.declared_attributes", Level::should, "each attribute of a body is declared", seconds(100),
     &declared_attributes},
    {"schema.unread", Level::must, "unread and sensitive paths are paths, with a reason", seconds(100), &unread},
    {"schema.settings_fuzz", Level::must, "settings made from the schema open or are refused with a reason; no crash",
     seconds(90), &settings_fuzz},
    {"schema.statuses", Level::must, "every status is a known code, and a failure comes with a diagnostic", seconds(90),
     &statuses},
    {"schema.metrics", Level::must, "gauges are declared and finite", seconds(100), &metrics},
    {"schema.upgrade", Level::must,
     "driftd.upgrade/1 gives a JSON object for a body of an older revision, the same each time", seconds(100),
     &upgrade},
};

}  // namespace

std::span<const Check> schema_checks() { return kSchemaChecks; }

}  // namespace driftd::check
