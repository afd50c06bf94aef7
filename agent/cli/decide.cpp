// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

struct Options {
  std::vector<std::string> drifts;
  std::string reason, digest;
  std::int64_t expires_seconds = 0;
};

core::Value body_of(const Options& options) {
  core::Value::Object body;
  if (!options.reason.empty()) body.emplace("reason", options.reason);
  if (!options.digest.empty()) body.emplace("digest", options.digest);
  if (options.expires_seconds > 0) {
    body.emplace("expires_seconds", core::Value::Number{std::to_string(options.expires_seconds)});
  }
  return body;
}

/// Decides each; goes on after a refusal and returns the worst code.
int decide(const Context& context, const std::string& verb, const Options& options) {
  const Client client = context.client();
  int exit = kOk;
  for (const auto& id : options.drifts) {
    const auto answer = client.post("/v1/drifts/" + escape(id) + "/" + verb, body_of(options));
    if (!answer) {
      exit = std::max(exit, context.fail(answer.error().exit, id + ": " + answer.error().message));
      continue;
    }
    const core::Value drift = member(*answer, "drift");
    if (context.json()) {
      context.out() << json_text(drift) << "\n";
    } else {
      const std::string status = text(drift, "status");
      context.out() << printable(text(drift, "id")) << "  " << printable(text(drift, "resource")) << "  "
                    << painted(printable(status), colour_of(status), context.streams.colour) << "\n";
    }
  }
  return exit;
}

void add_verb(CLI::App& app, Context& context, const std::string& verb, const std::string& about) {
  auto* command = app.add_subcommand(verb, about);
  auto options = std::make_shared<Options>();
  command->add_option("DRIFT", options->drifts, "ids as `driftd drifts` prints them")->required();
  command->add_option("--reason", options->reason, "kept with the decision");
  command->add_option("--digest", options->digest, "refuse unless the drift still has this digest");
  if (verb == "reject" || verb == "ignore") {
    command->add_option("--expires-seconds", options->expires_seconds, "then it is pending again")->check(CLI::PositiveNumber);
  }
  command->callback([&context, verb, options] { context.exit = decide(context, verb, *options); });
}

}  // namespace

void add_decisions(CLI::App& app, Context& context) {
  add_verb(app, context, "approve", "accept: the baseline follows");
  add_verb(app, context, "reject", "the baseline stands; silent until the value moves");
  add_verb(app, context, "ignore", "this value is fine; tell me of any other");
  add_verb(app, context, "undo", "take a decision back");
}

}  // namespace driftd::cli
