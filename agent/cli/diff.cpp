// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <random>

#include "cli/command.hpp"
#include "cli/glance.hpp"
#include "cli/schema_file.hpp"
#include "cli/show.hpp"
#include "core/disclosure.hpp"
#include "core/judge/expected.hpp"
#include "core/judge/known_names.hpp"
#include "core/redact.hpp"

namespace driftd::cli {
namespace {

struct DiffOptions {
  std::string old_file, new_file, schema;
  bool partial = false, explain = false;
  std::vector<std::string> show, hide, known;
};

Outcome<core::Value> read_json(const std::string& file) {
  const auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  auto value = core::parse(*text);
  if (!value) return tl::unexpected(Failure{kUsage, file + ": " + value.error().message});
  return std::move(*value);
}

Outcome<core::Value> read_body(const std::string& file) {
  auto value = read_json(file);
  if (!value || value->object() != nullptr) return value;
  return tl::unexpected(Failure{kUsage, file + ": a resource's body must be a JSON object"});
}

Outcome<core::KnownNames> read_known(const std::vector<std::string>& files) {
  core::KnownNames out;
  for (const auto& file : files) {
    const auto value = read_json(file);
    if (!value) return tl::unexpected(value.error());
    if (const Status added = out.add(*value); !added)
      return tl::unexpected(Failure{kUsage, file + ": " + added.error().message});
  }
  return out;
}

core::Path path_of(const std::string& text) {
  auto path = core::Path::parse(text);
  return path ? std::move(*path) : core::Path().child(text);
}

const core::Value& withheld() {
  static const core::Value kWithheld(std::string("[REDACTED]"));
  return kWithheld;
}

/// Decides which values of a difference may be shown. No provider is asked which attributes have known values, so every
/// attribute counts as free-form: only values that are harmless by name or by form (ADR 0013), or that `--show` names,
/// are shown.
class DisclosureFilter {
 public:
  static Outcome<DisclosureFilter> of(const DiffOptions& options, const core::KindSchema& schema) {
    std::vector<core::RedactRule> rules;
    for (const bool show : {false, true}) {
      for (const auto& path : show ? options.show : options.hide) {
        if (const auto glob = core::Glob::parse_path(path); !glob) {
          return tl::unexpected(Failure{kUsage, "'" + path + "' is not a path: " + glob.error().message});
        }
        rules.push_back({show, path});
      }
    }
    return DisclosureFilter(core::Disclosure({{"*", "", "**"}}, rules), schema);
  }

  void apply(core::Change& change) const {
    const core::Path path = path_of(change.path);
    if (!change.redacted) {
      std::optional<core::Value> before = parsed(change.old_value), after = parsed(change.new_value);
      const bool secret = is_secret(path, before) || is_secret(path, after);
      if (secret && !schema_.rule(path).cls) change.cls = core::ChangeClass::credential;
      view(path, before);
      view(path, after);
      change.redacted = before == withheld() || after == withheld();
      if (before) change.old_value = core::render(*before);
      if (after) change.new_value = core::render(*after);
    }
    if (!change.redacted) return;
    for (auto* value : {&change.old_value, &change.new_value}) {
      if (*value) *value = core::render(withheld());
    }
  }

  void apply(core::Step& step) const {
    step.reason = core::Disclosure::shown_text(step.reason);
    hide(path_of(step.path), step.old_raw, step.old_norm);
    hide(path_of(step.path), step.new_raw, step.new_norm);
  }

 private:
  DisclosureFilter(core::Disclosure disclosure, const core::KindSchema& schema)
      : disclosure_(std::move(disclosure)),
        schema_(schema),
        id_{schema.kind(), "offline"} {}

  static std::optional<core::Value> parsed(const std::optional<std::string>& json) {
    if (!json) return std::nullopt;
    auto value = core::parse(*json);
    return value ? std::move(*value) : withheld();
  }

  bool is_secret(const core::Path& path, const std::optional<core::Value>& value) const {
    return value && disclosure_.of(id_, path, *value) == core::Visibility::secret;
  }

  void view(const core::Path& path, std::optional<core::Value>& value) const {
    if (value) value = view(path, std::move(*value));
  }
  core::Value view(const core::Path& path, core::Value value) const {
    if (core::as_digest(value)) return withheld();
    if (auto* object = value.object()) {
      for (auto& [name, member] : *object) member = view(path.child(name), std::move(member));
      return value;
    }
    if (auto* array = value.array()) {
      for (std::size_t i = 0; i < array->size(); ++i) (*array)[i] = view(path.child(i), std::move((*array)[i]));
      return value;
    }
    const bool shown = value.is_null() || disclosure_.of(id_, path, value) == core::Visibility::shown;
    return shown ? value : withheld();
  }

  /// A normal form has no paths, so it is shown only if its whole value may be shown.
  void hide(const core::Path& path, std::string& raw, std::string& normal) const {
    if (raw.empty()) return;
    const auto value = core::parse(raw);
    const core::Value seen = value ? view(path, *value) : withheld();
    if (value && seen == *value) return;
    raw = normal = core::render(seen);
  }

  core::Disclosure disclosure_;
  const core::KindSchema& schema_;
  core::ResourceId id_;
};

std::string side(const std::optional<std::string>& json, bool redacted) {
  if (!json) return "(absent)";
  return redacted ? "[REDACTED]" : core::presentable_json(*json);
}

/// What the comparison found, and the attributes of the later body that it did not look at.
struct Comparison {
  core::Difference difference;
  std::vector<std::string> not_compared;
};

core::Value to_json(const Comparison& comparison) {
  const core::Difference& difference = comparison.difference;
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
  core::Value::Object out{{"changes", std::move(changes)}, {"unknown", std::move(unknown)}};
  if (!comparison.not_compared.empty()) {
    core::Value::Array names;
    for (const auto& name : comparison.not_compared) names.emplace_back(name);
    out.emplace("not_compared", std::move(names));
  }
  return out;
}

std::optional<core::Value> value_of(const std::optional<std::string>& json, bool redacted) {
  if (!json) return std::nullopt;
  auto value = redacted ? Result<core::Value>(withheld()) : core::parse(*json);
  return value ? std::optional(*std::move(value)) : std::optional(core::Value(*json));
}

/// The path on a line of its own, then what differs: `~ 604800000 → 86400000 (7 d → 1 d)`.
void show_change(const Context& context, const core::Change& change, const core::KindSchema& schema) {
  const core::Path path = path_of(change.path);
  const core::AttributeRule& rule = schema.rule(path);
  context.out() << painted(printable(change.path), Colour::bold, context.streams.colour) << "  "
                << core::render(change.cls) << "\n";
  const auto before = value_of(change.old_value, change.redacted), after = value_of(change.new_value, change.redacted);
  show_glance(context, glance(before, after, path.render(), {.rule = &rule}));
}

void show_not_compared(const Context& context, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  if (names.empty()) return;
  std::string line;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) line += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) line += " and " + std::to_string(names.size() - kShown) + " more";
  context.out() << "not compared " << printable(line) << "\n";
}

void show_difference(const Context& context, const Comparison& comparison, const std::vector<core::Step>& steps,
                     const core::KindSchema& schema) {
  const core::Difference& difference = comparison.difference;
  for (const auto& change : difference.changes) show_change(context, change, schema);
  if (difference.changes.empty()) context.out() << "equal\n";
  for (const auto& one : difference.unknown)
    context.out() << "unknown " << printable(one.path + ": " + one.reason) << "\n";
  show_not_compared(context, comparison.not_compared);
  if (!steps.empty()) context.out() << "\n";
  for (const auto& step : steps)
    show_step(context, {step.path, step.verdict, step.reason, step.rule, step.old_raw, step.new_raw, step.old_norm,
                        step.new_norm});
}

core::RedactionKey make_temporary_key(const char* id) {
  core::RedactionKey out{id, {}};
  std::random_device source;
  for (auto& byte : out.key) byte = static_cast<std::remove_reference_t<decltype(byte)>>(source());
  return out;
}

/// The schema, id and keys for comparing two bodies. The keys are random and last for this run.
struct ComparisonSetup {
  std::shared_ptr<const core::KindSchema> schema;
  core::ResourceId id{schema->kind(), "offline"};
  std::shared_ptr<const core::RedactionKeys> keys = std::make_shared<const core::RedactionKeys>(
      core::RedactionKeys{make_temporary_key("00000000"), make_temporary_key("11111111")});
};

/// Returns the body as the agent would store it: attributes that the schema calls sensitive become digests.
Outcome<core::Value> redact_and_seal(const core::Value& body, const ComparisonSetup& setup, const std::string& file) {
  const auto failure = [&](const Error& error) { return tl::unexpected(Failure{kUsage, file + ": " + error.message}); };
  const auto redacted = core::redact(core::render(body), setup.id, *setup.schema, {}, setup.keys->worker);
  if (!redacted) return failure(redacted.error());
  const auto text = core::seal(*redacted, setup.keys->store);
  if (!text) return failure(text.error());
  auto out = core::parse(*text);
  if (!out) return failure(out.error());
  return std::move(*out);
}

/// Reads the OLD file like `where:` of an expectation: its keys are paths, except that a key that the other body has as
/// a name, with dots in it, is that name.
Outcome<core::ExpectedAttributes> read_where(const core::Value& body, const core::Value& other,
                                             const std::string& file) {
  core::ExpectedAttributes out;
  for (const auto& [key, value] : *body.object()) {
    const std::string path = other.find(key) == nullptr ? key : core::Path().child(key).render();
    if (const Status wanted = core::add_expected(out, path, value); !wanted) {
      return tl::unexpected(Failure{kUsage, file + ": " + wanted.error().message});
    }
  }
  if (out.empty())
    return tl::unexpected(Failure{kUsage, file + ": expects nothing; expected paths and values, as under `where:`"});
  return out;
}

Outcome<Comparison> compare(const DiffOptions& options, const ComparisonSetup& setup, std::vector<core::Step>& steps) {
  const auto before = read_body(options.old_file);
  if (!before) return tl::unexpected(before.error());
  const auto after = read_body(options.new_file);
  if (!after) return tl::unexpected(after.error());
  const auto now = redact_and_seal(*after, setup, options.new_file);
  if (!now) return tl::unexpected(now.error());
  const auto known = read_known(options.known);
  if (!known) return tl::unexpected(known.error());
  core::DiffOptions how;
  how.known = options.known.empty() ? nullptr : &*known;
  how.old_revision = setup.schema->revision();
  how.trace = options.explain ? &steps : nullptr;
  how.id = setup.id;
  how.keys = setup.keys.get();
  if (options.partial) {
    const auto where = read_where(*before, *now, options.old_file);
    if (!where) return tl::unexpected(where.error());
    if (options.explain) (void)core::diff_expected(*where, *now, *setup.schema, how);
    return Comparison{core::judge_expected(*where, *now, setup.schema, setup.id, setup.keys, how.known),
                      core::not_expected(*where, *now, *setup.schema)};
  }
  const auto then = redact_and_seal(*before, setup, options.old_file);
  if (!then) return tl::unexpected(then.error());
  return Comparison{core::diff(*then, *now, *setup.schema, how), {}};
}

int diff(const Context& context, const DiffOptions& options) {
  const auto schema = options.schema.empty() ? core::KindSchema::unknown("resource") : read_schema(options.schema);
  if (!schema) return context.fail(schema.error());
  const auto shown = DisclosureFilter::of(options, **schema);
  if (!shown) return context.fail(shown.error());
  std::vector<core::Step> steps;
  auto comparison = compare(options, ComparisonSetup{*schema}, steps);
  if (!comparison) return context.fail(comparison.error());
  core::Difference& difference = comparison->difference;
  for (auto& change : difference.changes) shown->apply(change);
  for (auto& step : steps) shown->apply(step);
  for (auto& one : difference.unknown) one.reason = core::Disclosure::shown_text(one.reason);
  if (context.json()) {
    context.out() << json_text(to_json(*comparison)) << "\n";
  } else {
    show_difference(context, *comparison, steps, **schema);
  }
  if (!difference.changes.empty()) return kFinding;
  return difference.unknown.empty() ? kOk : kIncomplete;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("diff", "compare two bodies offline: exit 0 equal, 1 drift, 3 something unknown");
  auto options = std::make_shared<DiffOptions>();
  command->add_option("OLD", options->old_file, "JSON file of a resource's body")->required();
  command->add_option("NEW", options->new_file, "JSON file of the same resource's body")->required();
  command->add_option("--schema", options->schema,
                      "how attributes are read: a driftd-schema/1 file, or a name of `driftd schema list`");
  command->add_flag("--partial", options->partial,
                    "OLD is the `where:` of an expectation: paths and what must hold there; what else NEW has is "
                    "named, not compared");
  command
      ->add_option("--known", options->known,
                   "names of one thing: a Terraform state, or a JSON list of lists of names; references that are "
                   "known to mean one thing are equal")
      ->allow_extra_args(false);
  command->add_option("--show", options->show, "path or name whose values may be shown, as `redact: { show: … }`")
      ->allow_extra_args(false);
  command->add_option("--hide", options->hide, "path or name whose values are withheld, as `redact: { hide: … }`")
      ->allow_extra_args(false);
  command->add_flag("--explain", options->explain, "show how each attribute was read");
  command->callback([&context, options] { context.exit = diff(context, *options); });
}

}  // namespace driftd::cli
