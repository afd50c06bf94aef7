// SPDX-License-Identifier: Apache-2.0
// Group schema, part 1: how a provider describes itself. Part 2 is group_schema_calls.cpp.
#include "check/group_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "check/documents.hpp"
#include "check/listing.hpp"
#include "core/value/schema.hpp"
#include "ipc/text.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

void describe(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const std::string text = expect_document("describe", provider.describe(), provider.describe());
  expect_text_member(text, "id");
  expect_text_member(text, "version");
  (void)expect_names(text, "types");
  for (const auto& kind : expect_names(text, "kinds")) {
    if (kind == "settings")
      throw RuleBroken("describe: a kind cannot be called `settings`: schema(\"settings\") is taken");
  }
  expect_objects(text, "metrics", {"name", "unit"});
  expect_objects(text, "extensions", {"id", "revision"});
  expect_concurrency(text);
  const Json json = Json::parse(text);
  if (json.contains("diff") && !json["diff"].is_boolean()) throw RuleBroken("describe: `diff` must be true or false");
}

void settings(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const std::string text =
      expect_document("schema(\"settings\")", provider.schema("settings"), provider.schema("settings"));
  expect_settings_schema(text, {"{}", subject.settings_json, R"({"no-such-setting":[1]})"});
}

void each_kind(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const std::string description = expect_document("describe", provider.describe(), provider.describe());
  for (const auto& kind : expect_names(description, "kinds")) {
    const std::string name = "schema(\"" + kind + "\")";
    const std::string text = expect_document(name, provider.schema(kind), provider.schema(kind));
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
    const auto schema = core::KindSchema::parse(expect_document(name, provider.schema(kind), provider.schema(kind)));
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
