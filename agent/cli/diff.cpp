// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "cli/command.hpp"
#include "core/declaration.hpp"
#include "core/expected.hpp"
#include "core/redact.hpp"

namespace driftd::cli {
namespace {

struct Options {
  std::string old_file, new_file, schema_file;
  bool partial = false, explain = false;
};

Outcome<std::string> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (in.is_open() && !in.bad() && (in || in.eof())) return text.str();
  return tl::unexpected(Failure{kUsage, file + ": cannot be read"});
}

Outcome<core::Value> read_body(const std::string& file) {
  const auto text = read(file);
  if (!text) return tl::unexpected(text.error());
  auto value = core::parse(*text);
  if (!value) return tl::unexpected(Failure{kUsage, file + ": " + value.error().message});
  if (value->object() != nullptr) return std::move(*value);
  return tl::unexpected(Failure{kUsage, file + ": a resource's body must be a JSON object"});
}

Outcome<std::shared_ptr<const core::KindSchema>> read_schema(const std::string& file) {
  if (file.empty()) return core::KindSchema::unknown("resource");
  const auto text = read(file);
  if (!text) return tl::unexpected(text.error());
  auto schema = core::KindSchema::parse(*text);
  if (!schema) return tl::unexpected(Failure{kUsage, file + ": " + schema.error().message});
  return *schema;
}

std::string side(const std::optional<std::string>& json, bool redacted) {
  if (!json) return "(absent)";
  return redacted ? "[REDACTED]" : core::presentable_json(*json);
}

core::Value to_json(const core::Difference& difference) {
  core::Value::Array changes, unknown;
  for (const auto& change : difference.changes) {
    core::Value::Object one{{"path", change.path}, {"class", core::Value(std::string(core::render(change.cls)))}};
    if (change.old_value) one.emplace("old", side(change.old_value, change.redacted));
    if (change.new_value) one.emplace("new", side(change.new_value, change.redacted));
    changes.push_back(std::move(one));
  }
  for (const auto& one : difference.unknown) {
    unknown.push_back(core::Value::Object{{"path", one.path}, {"reason", one.reason}});
  }
  return core::Value::Object{{"changes", std::move(changes)}, {"unknown", std::move(unknown)}};
}

void show(const Context& context, const core::Difference& difference, const std::vector<core::Step>& steps) {
  Table table({"PATH", "CLASS", "OLD", "NEW"});
  for (const auto& change : difference.changes) {
    table.add({change.path, std::string(core::render(change.cls)), side(change.old_value, change.redacted),
               side(change.new_value, change.redacted)});
  }
  context.print(table, "equal");
  for (const auto& one : difference.unknown) context.out() << "unknown " << printable(one.path + ": " + one.reason) << "\n";
  if (steps.empty()) return;
  Table trace({"PATH", "VERDICT", "READ AS", "RULE", "REASON"});
  for (const auto& step : steps) {
    trace.add({step.path, {step.verdict, colour_of(step.verdict)}, step.old_norm + " | " + step.new_norm, step.rule,
               step.reason});
  }
  context.out() << "\n";
  context.print(trace, "nothing to explain");
}

/// The body as the agent would hold it: what the schema calls sensitive is a digest, under a key of this run.
Outcome<core::Value> redacted(const core::Value& body, const core::KindSchema& schema, const core::RedactionKey& key,
                              const std::string& file) {
  const auto text = core::redact(core::render(body), {"resource", "offline"}, schema, {}, key);
  if (!text) return tl::unexpected(Failure{kUsage, file + ": " + text.error().message});
  auto out = core::parse(*text);
  if (!out) return tl::unexpected(Failure{kUsage, file + ": " + out.error().message});
  return std::move(*out);
}

core::RedactionKey key_of_this_run() {
  core::RedactionKey out{"00000000", {}};
  std::random_device source;
  for (auto& byte : out.key) byte = static_cast<std::remove_reference_t<decltype(byte)>>(source());
  return out;
}

Outcome<core::Difference> compare(const Options& options, std::vector<core::Step>& steps) {
  const auto before = read_body(options.old_file);
  if (!before) return tl::unexpected(before.error());
  const auto after = read_body(options.new_file);
  if (!after) return tl::unexpected(after.error());
  const auto schema = read_schema(options.schema_file);
  if (!schema) return tl::unexpected(schema.error());
  const core::RedactionKey key = key_of_this_run();
  const auto now = redacted(*after, **schema, key, options.new_file);
  if (!now) return tl::unexpected(now.error());
  core::DiffOptions how;
  how.old_revision = (*schema)->revision();
  how.trace = options.explain ? &steps : nullptr;
  if (options.partial) return core::diff_expected(core::declared_values(*before), *now, **schema, how);
  const auto then = redacted(*before, **schema, key, options.old_file);
  if (!then) return tl::unexpected(then.error());
  return core::diff(*then, *now, **schema, how);
}

int diff(const Context& context, const Options& options) {
  std::vector<core::Step> steps;
  const auto difference = compare(options, steps);
  if (!difference) return context.fail(difference.error());
  if (context.json()) {
    context.out() << json_text(to_json(*difference)) << "\n";
  } else {
    show(context, *difference, steps);
  }
  if (!difference->changes.empty()) return kFinding;
  return difference->unknown.empty() ? kOk : kIncomplete;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("diff", "compare two bodies offline: exit 0 equal, 1 drift, 3 something unknown");
  auto options = std::make_shared<Options>();
  command->add_option("OLD", options->old_file, "JSON file of a resource's body")->required();
  command->add_option("NEW", options->new_file, "JSON file of the same resource's body")->required();
  command->add_option("--schema", options->schema_file, "driftd-schema/1 file that says how attributes are read");
  command->add_flag("--partial", options->partial, "OLD is what is expected: its attributes must hold as under `expect:`, others are not looked at");
  command->add_flag("--explain", options->explain, "show how each attribute was read");
  command->callback([&context, options] { context.exit = diff(context, *options); });
}

}  // namespace driftd::cli
