// SPDX-License-Identifier: Apache-2.0
// Policies that one can try: `policy test` over the history, `policy explain` for one attribute.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/instant.hpp"
#include "cli/command.hpp"
#include "cli/policy_history.hpp"
#include "core/judge/policy_trial.hpp"
#include "core/value/schema.hpp"

namespace driftd::cli {
namespace {

struct PolicyOptions {
  std::string file, history, at, cls;
  std::vector<std::string> backends;
  std::string backend, resource, path;
  bool all = false;
};

/// What happens to a change under an action, as an operator would say it.
std::string outcome_of(const std::optional<core::Action>& action) {
  if (!action) return "not judged";
  switch (*action) {
    case core::Action::automatic:
      return "accepted";
    case core::Action::manual:
      return "asked";
    case core::Action::ignore:
      return "told once";
    case core::Action::enforce:
      return "put back";
  }
  return "";
}

/// One attribute that the policy would treat in another way than it was treated.
struct Other {
  const PastDrift* past;
  std::string path;
  std::optional<core::Action> would;
  std::string where;
};

struct Trial {
  std::size_t drifts = 0, attributes = 0, fixed = 0;
  Nanos first_ns = 0;
  std::vector<Other> others;
  std::map<std::string, std::size_t> decided_by;  ///< number of attributes by rule
};

Outcome<std::optional<Nanos>> parse_at(const std::string& text) {
  if (text.empty()) return std::optional<Nanos>();
  const auto moment = parse_nanos(text);
  if (!moment) {
    return tl::unexpected(
        Failure{kUsage, "--at '" + text + "' is no time; expected one with its zone, such as 2026-12-24T18:00:00Z"});
  }
  return moment;
}

/// Tries one drift. One that came or went is decided as a whole, by the rule on the resource itself.
void try_drift(const core::Rules& rules, const PastDrift& past, bool of_states, Trial& trial) {
  const bool whole =
      past.drift.operation == core::Operation::created || past.drift.operation == core::Operation::deleted;
  for (const auto& change : past.drift.changes) {
    if (whole && change.path != core::kIdentityPath) continue;
    const auto verdict = core::try_policy(rules, past.drift, change, of_states);
    ++trial.attributes;
    ++trial.decided_by[verdict.where];
    if (verdict.action != past.drift.action)
      trial.others.push_back({&past, change.path, verdict.action, verdict.where});
  }
}

Trial try_history(const History& history, const config::Config& config, std::optional<Nanos> at) {
  Trial trial;
  for (const auto& past : history.drifts) {
    const auto found = std::find_if(config.backends.begin(), config.backends.end(), [&](const core::BackendSpec& spec) {
      return spec.name == past.backend || (!spec.was.empty() && spec.was == past.backend);
    });
    if (found == config.backends.end()) continue;
    ++trial.drifts;
    trial.first_ns = trial.drifts == 1 ? past.drift.opened_ns : std::min(trial.first_ns, past.drift.opened_ns);
    if (core::has_fixed_action(past.drift)) {
      ++trial.fixed;
      continue;
    }
    const bool of_states = found->provider.find("terraform") != std::string::npos;  // its id, or the path of its .so
    try_drift(core::rules_at(*found->rules, at.value_or(past.drift.opened_ns)), past, of_states, trial);
  }
  return trial;
}

/// Returns the policy and ignore rules of these backends that decided about nothing.
std::vector<std::string> idle_rules(const config::Config& config, const Trial& trial) {
  std::set<std::string> out;
  const auto note = [&](const std::string& where) {
    const bool used = std::any_of(trial.decided_by.begin(), trial.decided_by.end(),
                                  [&](const auto& one) { return one.first.starts_with(where); });
    if (!used) out.insert(where);
  };
  for (const auto& spec : config.backends) {
    for (const auto& rule : spec.rules->policy) note(rule.where);
    for (const auto& rule : spec.rules->ignore) note(rule.where);
  }
  return {out.begin(), out.end()};
}

core::Value to_json(const Trial& trial, const History& history, const std::vector<std::string>& idle) {
  core::Value::Array others, notes, rules;
  for (const auto& other : trial.others) {
    others.push_back(core::Value::Object{
        {"drift", other.past->drift.id},
        {"backend", other.past->backend},
        {"resource", core::render(other.past->drift.resource)},
        {"path", other.path},
        {"did", std::string(render(other.past->drift.action))},
        {"would", other.would ? core::Value(std::string(render(*other.would))) : core::Value(nullptr)},
        {"rule", other.where}});
  }
  for (const auto& note : history.notes) notes.emplace_back(note);
  for (const auto& rule : idle) rules.emplace_back(rule);
  const auto count = [](std::size_t n) { return core::Value(core::Value::Number{std::to_string(n)}); };
  return core::Value::Object{{"drifts", count(trial.drifts)},        {"attributes", count(trial.attributes)},
                             {"differ", count(trial.others.size())}, {"changes", std::move(others)},
                             {"idle_rules", std::move(rules)},       {"notes", std::move(notes)}};
}

void print_trial(const Context& context, const Trial& trial, const std::vector<std::string>& idle) {
  Table table({"DRIFT", "BACKEND", "RESOURCE", "PATH", "DID", "WOULD", "RULE"});
  std::map<std::string, std::size_t> sums;
  for (const auto& other : trial.others) {
    const std::string did = outcome_of(other.past->drift.action), would = outcome_of(other.would);
    const bool itself = other.path == core::kIdentityPath;
    const std::string path = itself ? "(" + std::string(render(other.past->drift.operation)) + ")" : other.path;
    table.add({other.past->drift.id,
               other.past->backend,
               core::render(other.past->drift.resource),
               path,
               did,
               {would, Colour::bold},
               other.where});
    ++sums[did + " → " + would];
  }
  if (!table.empty()) table.print(context.out(), context.streams.colour);
  context.out() << trial.drifts << " drifts with " << trial.attributes << " attributes";
  if (trial.drifts > 0) context.out() << " since " << when(render_time(trial.first_ns));
  context.out() << ": " << trial.attributes - trial.others.size() << " as they were";
  for (const auto& [what, count] : sums) context.out() << "; " << count << " " << what;
  if (trial.fixed > 0) context.out() << "; " << trial.fixed << " questions that no policy answers";
  context.out() << "\n";
  for (const auto& rule : idle) context.out() << "decides about nothing of it: " << printable(rule) << "\n";
}

Outcome<config::Config> load_candidate(const Context& context, const std::string& file) {
  config::LoadOptions options;
  options.resolve_secrets = false;
  auto loaded = config::load(file.empty() ? context.config : file, options);
  if (!loaded) return tl::unexpected(Failure{kConfig, config::render(loaded.error())});
  return std::move(*loaded);
}

/// Leaves only the asked backends, by name. Fails if one is not in the file.
std::optional<Failure> keep(const std::vector<std::string>& names, config::Config& config) {
  if (names.empty()) return std::nullopt;
  for (const auto& name : names) {
    const bool known = std::any_of(config.backends.begin(), config.backends.end(),
                                   [&](const core::BackendSpec& spec) { return spec.name == name; });
    if (!known) return Failure{kUsage, "the configuration has no backend '" + name + "'"};
  }
  std::erase_if(config.backends, [&](const core::BackendSpec& spec) {
    return std::find(names.begin(), names.end(), spec.name) == names.end();
  });
  return std::nullopt;
}

int test(const Context& context, const PolicyOptions& options) {
  auto config = load_candidate(context, options.file);
  if (!config) return context.fail(config.error());
  if (const auto unknown = keep(options.backends, *config)) return context.fail(*unknown);
  const auto at = parse_at(options.at);
  if (!at) return context.fail(at.error());
  std::vector<std::string> names;
  for (const auto& spec : config->backends) names.push_back(spec.name);
  const auto history =
      options.history.empty() ? history_of_agent(context.client(), names) : history_of_file(options.history);
  if (!history) return context.fail(history.error());
  const Trial trial = try_history(*history, *config, *at);
  const auto idle = idle_rules(*config, trial);
  if (context.json()) {
    context.out() << json_text(to_json(trial, *history, idle)) << "\n";
  } else {
    print_trial(context, trial, idle);
    for (const auto& note : history->notes) context.streams.err << "driftd: " << printable(note) << "\n";
  }
  return trial.others.empty() ? kOk : kFinding;
}

/// Returns the class of an attribute: the given one, or that of the agent's schema of the kind.
Outcome<core::ChangeClass> class_of(const Context& context, const PolicyOptions& options, const core::BackendSpec& spec,
                                    const std::string& kind) {
  if (!options.cls.empty()) {
    const auto cls = core::parse_class(options.cls);
    if (!cls) return tl::unexpected(Failure{kUsage, "--class: " + cls.error().message});
    return *cls;
  }
  const auto answer = context.client().get("/v1/schema", {{"provider", spec.provider}, {"what", kind}});
  if (!answer) {
    return tl::unexpected(Failure{answer.error().exit, answer.error().message +
                                                           "; the class of the attribute is not known without the "
                                                           "schema: name it with --class"});
  }
  const auto schema = core::KindSchema::parse(core::render(*answer));
  if (!schema) return tl::unexpected(Failure{kFinding, "the schema of " + kind + ": " + schema.error().message});
  return (*schema)->cls(core::Path::parse(options.path).value_or(core::Path()));
}

/// Returns the backend, or says which ones there are.
Outcome<const core::BackendSpec*> find_backend(const config::Config& config, const std::string& name) {
  std::string known;
  for (const auto& spec : config.backends) {
    if (spec.name == name) return &spec;
    known += (known.empty() ? "" : ", ") + spec.name;
  }
  return tl::unexpected(Failure{kUsage, "the configuration has no backend '" + name + "'; it has " + known});
}

void print_rules(const Context& context, const std::vector<core::RuleTrace>& rules, bool all) {
  const bool colour = context.streams.colour;
  std::size_t hidden = 0;
  for (const auto& rule : rules) {
    if (!rule.applies && !all && rule.why_not.empty()) {
      ++hidden;
      continue;
    }
    const std::string why = rule.applies ? "decides" : rule.why_not.empty() ? "an earlier one decides" : rule.why_not;
    context.out() << "  " << painted(rule.applies ? "→" : "·", rule.applies ? Colour::green : Colour::dim, colour)
                  << " " << printable(rule.where) << "  " << printable(rule.says) << "  "
                  << painted(printable(why), rule.applies ? Colour::bold : Colour::dim, colour) << "\n";
  }
  if (hidden > 0) context.out() << "  " << hidden << " later rules are not reached; --all shows them\n";
}

int explain(const Context& context, const PolicyOptions& options) {
  const auto config = load_candidate(context, options.file);
  if (!config) return context.fail(config.error());
  const auto spec = find_backend(*config, options.backend);
  if (!spec) return context.fail(spec.error());
  const std::size_t slash = options.resource.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == options.resource.size()) {
    return context.fail(kUsage, "'" + options.resource + "' is no resource; expected KIND/ID, such as topic/orders");
  }
  const core::ResourceId id{options.resource.substr(0, slash), options.resource.substr(slash + 1)};
  const auto at = parse_at(options.at);
  if (!at) return context.fail(at.error());
  core::Change change;
  change.path = options.path.empty() ? std::string(core::kIdentityPath) : options.path;
  if (const auto path = core::Path::parse(options.path); !options.path.empty() && !path) {
    return context.fail(kUsage, "path '" + options.path + "' is not valid: " + path.error().message);
  }
  const auto cls = class_of(context, options, **spec, id.kind);
  if (!cls) return context.fail(cls.error());
  change.cls = *cls;
  const auto rules = core::trace_rules(*(*spec)->rules, id, change, at->value_or(SystemClock().wall()));
  context.out() << printable((*spec)->name) << " " << printable(core::render(id)) << " "
                << printable(options.path.empty() ? "(the resource itself)" : options.path) << ", class "
                << render(change.cls) << "\n";
  print_rules(context, rules, options.all);
  return kOk;
}

}  // namespace

void add_policy(CLI::App& app, Context& context) {
  auto* policy = app.add_subcommand("policy", "try a policy before it decides anything");
  policy->require_subcommand(1);
  auto options = std::make_shared<PolicyOptions>();
  const auto common = [options](CLI::App* command) {
    command->add_option("--file", options->file, "the configuration to try (default: --config)");
    command->add_option("--at", options->at, "as if it were this time, for rules with `from` or `until`");
  };
  auto* test_command = policy->add_subcommand(
      "test", "run the policies of a configuration over the stored drifts; exit 1 if one would be treated otherwise");
  common(test_command);
  test_command->add_option("BACKEND", options->backends, "only these");
  test_command->add_option("--history", options->history,
                           "a file that `driftd drifts --all -o json` printed, instead of the agent");
  test_command->callback([&context, options] { context.exit = test(context, *options); });
  auto* explain_command = policy->add_subcommand("explain", "which rule decides about an attribute, and why no other");
  common(explain_command);
  explain_command->add_option("BACKEND", options->backend)->required();
  explain_command->add_option("KIND/ID", options->resource, "the resource, such as role/app")->required();
  explain_command->add_option("PATH", options->path, "the attribute; without it, the resource coming or going");
  explain_command->add_option("--class", options->cls, "config, credential or endpoint (default: the schema's)");
  explain_command->add_flag("--all", options->all, "rules behind the one that decides, too");
  explain_command->callback([&context, options] { context.exit = explain(context, *options); });
}

}  // namespace driftd::cli
