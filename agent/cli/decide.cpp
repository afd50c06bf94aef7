// SPDX-License-Identifier: Apache-2.0
// A decision names the value that it is about: ID@DIGEST, as `driftd drifts` prints it. If the digest is missing, a
// person at a terminal is asked to confirm the current value; any other caller gets the current value and an error.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <istream>
#include <memory>

#include "base/escape.hpp"
#include "cli/command.hpp"

namespace driftd::cli {
namespace {

struct DecideOptions {
  std::vector<std::string> drifts;
  std::string reason, digest;
  std::int64_t expires_seconds = 0;
  std::int64_t claim_seconds = 0;  ///< of `claim`
  bool take_over = false;
};

/// A drift as given on the command line.
struct Reference {
  std::string id, digest;
};

Reference parse(const std::string& text, const std::string& digest) {
  const std::size_t at = text.find('@');
  return {text.substr(0, at), at == std::string::npos ? digest : text.substr(at + 1)};
}

core::Value body_of(const DecideOptions& options, const std::string& digest) {
  core::Value::Object body;
  if (!options.reason.empty()) body.emplace("reason", options.reason);
  if (!digest.empty()) body.emplace("digest", digest);
  if (options.expires_seconds > 0) {
    body.emplace("expires_seconds", core::Value::Number{std::to_string(options.expires_seconds)});
  }
  if (options.claim_seconds > 0) body.emplace("seconds", core::Value::Number{std::to_string(options.claim_seconds)});
  if (options.take_over) body.emplace("take_over", core::Value(true));
  return body;
}

/// Returns the only open drift whose id begins with `id`. Fails if several do, or if the drift is closed or unknown.
Outcome<core::Value> find(const Client& client, const std::string& id) {
  const auto open = client.get("/v1/drifts", {{"drift", id}, {"limit", "2"}});
  if (!open) return tl::unexpected(open.error());
  const auto found = list(*open, "drifts");
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    return tl::unexpected(Failure{kFinding, "conflict: several open drifts begin with " + id + ", such as " +
                                                text(found[0], "id") + " and " + text(found[1], "id") +
                                                "; give more of the id"});
  }
  const auto past = client.get("/v1/drifts", {{"drift", id}, {"all", "true"}, {"limit", "1"}});
  if (!past) return tl::unexpected(past.error());
  const auto ended = list(*past, "drifts");
  if (ended.empty()) {
    return tl::unexpected(Failure{kFinding, "not_found: no drift " + id + "; `driftd drifts` lists the open ones"});
  }
  return tl::unexpected(Failure{kFinding, "conflict: drift " + text(ended[0], "id") + " is closed: " +
                                              text(ended[0], "status") + "; `driftd drifts` lists the open ones"});
}

/// Prints the full values that the table cuts, because the confirmation is for all of them.
void print_whole(const Context& context, const core::Value& drift) {
  constexpr std::size_t kMaxShown = 8192;
  const auto shown = [](const std::string& text) {
    const std::string_view first = front(text, kMaxShown);
    const std::size_t more = text.size() - first.size();
    return printable(first) +
           (more == 0 ? "" : " … and " + std::to_string(more) + " bytes more: driftd drifts -o json");
  };
  for (const auto& change : list(drift, "changes")) {
    const Sides whole = read_sides(change), cut = shorten(whole);
    if (whole.before == cut.before && whole.now == cut.now) continue;
    context.out() << printable(text(change, "path")) << ", whole:\n  old  " << shown(whole.before) << "\n  new  "
                  << shown(whole.now) << "\n";
  }
}

/// Shows the current drift and asks. Returns true if the person confirms it.
bool ask_confirmation(const Context& context, const std::string& verb, const core::Value& drift) {
  print_drifts(context, {drift});
  print_whole(context, drift);
  context.out() << verb << " this? [y/N] " << std::flush;
  std::string answer;
  std::getline(*context.streams.answers, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// Returns the digest for an id without one, after a person at a terminal has confirmed the current value. Fails for
/// any other caller.
Outcome<std::string> confirm_digest(const Context& context, const Client& client, const std::string& verb,
                                    const std::string& id) {
  const auto drift = find(client, id);
  if (!drift) return tl::unexpected(drift.error());
  if (context.streams.answers != nullptr && !context.json()) {
    if (ask_confirmation(context, verb, *drift)) return text(*drift, "digest");
    return tl::unexpected(Failure{kFinding, "nothing was decided"});
  }
  if (!context.json()) print_drifts(context, {*drift});
  return tl::unexpected(
      Failure{kUsage,
              "a decision needs the digest of its value, because the value may have changed since you saw it. "
              "To decide the current value: driftd " +
                  verb + " " + text(*drift, "ref")});
}

/// Decides one drift. Raises `exit` if the agent refuses.
void decide_one(const Context& context, const Client& client, const std::string& verb, const std::string& given,
                const DecideOptions& options, int& exit) {
  const auto refuse = [&](const Failure& failure) {
    exit = std::max(exit, context.fail(failure.exit, given + ": " + failure.message));
  };
  Reference drift = parse(given, options.digest);
  const bool claims = verb == "claim" || verb == "release";
  if (claims) drift.digest.clear();  // a claim is about the drift, whatever its value
  if (drift.digest.empty() && verb != "undo" && !claims) {
    auto digest = confirm_digest(context, client, verb, drift.id);
    if (!digest) return refuse(digest.error());
    drift.digest = *digest;
  }
  const auto answer = client.post("/v1/drifts/" + escape(drift.id) + "/" + verb, body_of(options, drift.digest));
  if (!answer) return refuse(answer.error());
  const core::Value decided = member(*answer, "drift");
  if (context.json()) {
    context.out() << json_text(decided) << "\n";
    return;
  }
  const std::string status = text(decided, "status");
  context.out() << printable(text(decided, "id")) << "  " << printable(text(decided, "resource")) << "  "
                << painted(printable(status), colour_of(status), context.streams.colour) << progress_of(decided)
                << "\n";
}

/// Decides each drift, continues after a refusal, and returns the highest exit code.
int decide(const Context& context, const std::string& verb, const DecideOptions& options) {
  const Client client = context.client();
  int exit = kOk;
  for (const auto& drift : options.drifts) decide_one(context, client, verb, drift, options, exit);
  return exit;
}

void add_verb(CLI::App& app, Context& context, const std::string& verb, const std::string& about) {
  auto* command = app.add_subcommand(verb, about);
  auto options = std::make_shared<DecideOptions>();
  const bool by_id = verb == "undo" || verb == "claim" || verb == "release";
  const std::string form = by_id ? "ids as `driftd drifts` prints them, or their beginnings"
                                 : "ID@DIGEST as `driftd drifts` prints them, ids also by their beginnings";
  command->add_option("DRIFT", options->drifts, form)->required();
  command->add_option("--reason", options->reason, "kept with the decision");
  command->add_flag("--take-over", options->take_over, "although somebody else has claimed the drift");
  if (verb == "claim") {
    command
        ->add_option("--for", options->claim_seconds, "how long you look after it, such as 15m (the default), 2h or 1d")
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, std::int64_t>{{"s", 1}, {"m", 60}, {"h", 3'600}, {"d", 86'400}}))
        ->check(CLI::PositiveNumber);
  }
  if (verb != "claim" && verb != "release") {
    command->add_option("--digest", options->digest, "the digest for ids that are given without one");
  }
  if (verb == "reject" || verb == "ignore" || verb == "approve") {
    command
        ->add_option("--expires-seconds", options->expires_seconds,
                     verb == "approve" ? "how long this approval waits for that of another person, if the policy asks "
                                         "for several"
                                       : "after this time the drift is pending again")
        ->check(CLI::PositiveNumber);
  }
  command->callback([&context, verb, options] { context.exit = decide(context, verb, *options); });
}

}  // namespace

void add_decisions(CLI::App& app, Context& context) {
  add_verb(app, context, "approve", "accept the current value: it becomes the baseline");
  add_verb(app, context, "reject",
           "keep the baseline; the drift stays open and is reported again only with another value");
  add_verb(app, context, "ignore", "leave this value alone; the drift is reported again only with another value");
  add_verb(app, context, "undo",
           "revoke a decision; of an approval as long as its value is still the baseline and has not moved");
  add_verb(app, context, "claim", "say that you look after a drift; others then cannot decide it by mistake");
  add_verb(app, context, "release", "end your claim of a drift");
}

}  // namespace driftd::cli
