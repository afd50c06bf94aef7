// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

/// Adds the start of the replay: `17` is a sequence number, `2026-11-21T03:39:16Z` a time, anything else an event id.
void put_start(core::Value::Object& body, const std::string& from) {
  const bool digits = !from.empty() && from.find_first_not_of("0123456789") == std::string::npos;
  const bool time = from.size() >= 20 && from[4] == '-' && from[10] == 'T' && from.ends_with('Z');
  if (digits) {
    body.emplace("from_seq", core::Value::Number{std::to_string(std::stoll("0" + from.substr(0, 18)))});
  } else {
    body.emplace(time ? "from_time" : "from_id", core::Value(from));
  }
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("replay", "send stored events to one sink again, under the same ids");
  struct Options {
    std::string sink, from, key;
    std::int64_t rate = 0;
  };
  auto options = std::make_shared<Options>();
  command->add_option("--sink", options->sink)->required();
  command->add_option("--from", options->from, "seq, event id, or time such as 2026-11-21T03:39:16Z")->required();
  command->add_option("--key", options->key, "only events of this resource: backend/kind/id");
  command->add_option("--rate", options->rate, "maximum number of events per second")->check(CLI::PositiveNumber);
  command->callback([&context, options] {
    core::Value::Object body{{"sink", core::Value(options->sink)}, {"key", core::Value(options->key)}};
    put_start(body, options->from);
    body.emplace("rate", core::Value::Number{std::to_string(options->rate)});
    context.exit = context.print(context.client().post("/v1/replay", body), [&](const auto& value) {
      context.out() << text(value, "count") << " events will be sent again to " << printable(options->sink) << "\n";
    });
  });
}

}  // namespace driftd::cli
