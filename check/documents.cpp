// SPDX-License-Identifier: Apache-2.0
#include "check/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "check/check.hpp"
#include "check/guarded_call.hpp"
#include "check/job.hpp"
#include "ipc/settings_schema.hpp"
#include "ipc/text.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDocumentBytes = 1u << 20;

/// Keeps a document of any size, because the checks that ask for it know its maximum and report a longer one.
void push_document(void* user, driftd_str text) {
  static_cast<CallTrace*>(user)->pushed.push_back(parse_text(text, "pushed text", 16u << 20));
}

Json parse_object(const std::string& name, const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw RuleBroken(name + " pushed no JSON object: " + ipc::printable(text.substr(0, 120), 120));
  return json;
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

}  // namespace

CallTrace ask_document(const std::string& name, std::function<driftd_status(driftd_push_fn, void*)> function) {
  const auto trace = std::make_shared<CallTrace>();
  const auto job = Job::start([trace, name, function = std::move(function)] {
    set_progress(name);
    try {
      trace->status = function(&push_document, trace.get());
    } catch (...) {
      add_exception(*trace, name);
    }
  });
  if (!job->wait(kGrace)) {
    throw RuleBroken(fmt::format("{}, which does no I/O, did not return within {} ms", name, kGrace.count()));
  }
  return *trace;
}

std::string expect_document(const std::string& name, const CallTrace& first, const CallTrace& second) {
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

void expect_text_member(const std::string& text, const char* member) {
  const Json describe = parse_object("describe", text);
  const auto found = describe.find(member);
  if (found == describe.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
    throw RuleBroken(fmt::format("describe: `{}` must be a text that is not empty", member));
  }
}

std::vector<std::string> expect_names(const std::string& text, const char* member) {
  const Json describe = parse_object("describe", text);
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

void expect_objects(const std::string& text, const char* list, std::initializer_list<const char*> members) {
  const Json describe = parse_object("describe", text);
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

void expect_concurrency(const std::string& text) {
  const Json describe = parse_object("describe", text);
  const auto found = describe.find("concurrency");
  if (found == describe.end()) return;
  if (!found->is_number_integer() || *found < 1 || *found > 64) {
    throw RuleBroken(fmt::format("describe: `concurrency` must be 1 to 64, found {}", found->dump()));
  }
}

void expect_settings_schema(const std::string& text, const std::vector<std::string>& samples) {
  const std::string name = "schema(\"settings\")";
  const Json schema = parse_object(name, text);
  if (schema.value("type", Json("object")) != "object") {
    throw RuleBroken(fmt::format("{}: expected the type object, found {}", name, schema["type"].dump()));
  }
  understood(schema, "settings");
  for (const std::string& given : samples) {
    if (given.empty()) continue;
    const auto errors = ipc::validate_settings(text, given);
    if (!errors) throw RuleBroken(errors.error().message);
  }
}

}  // namespace driftd::check
