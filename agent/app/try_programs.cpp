// SPDX-License-Identifier: Apache-2.0
// Runs the programs of `${exec:…}` for `driftd validate --run-programs`.
#include "app/app.hpp"
#include "app/executors.hpp"
#include "base/fatal.hpp"
#include "secrets/program_answer.hpp"
#include "secrets/program_run.hpp"

namespace driftd::app {
namespace {

Task<void> try_one(Executors& executors, const config::ProgramUse& use, std::string& why) {
  const auto run =
      std::make_shared<secrets::ProgramRun>(executors.core.get_executor(), executors.io.get_executor(), use);
  const auto output = co_await secrets::ProgramRun::run(run);
  if (!output) {
    const std::string line = secrets::last_line(run->errors(), {run->output()});
    why = output.error().message + (line.empty() ? "" : ": " + line);
    co_return;
  }
  const auto answer = secrets::read_answer(*output, SystemClock().wall());
  if (!answer) why = use.program.path + ": " + answer.error().message;
}

}  // namespace

std::vector<config::ConfigError> try_programs(const config::Config& config) {
  Executors executors;
  std::vector<std::string> whys(config.program_uses.size());
  for (std::size_t i = 0; i < whys.size(); ++i) {
    asio::co_spawn(executors.core, try_one(executors, config.program_uses[i], whys[i]), fatal);
  }
  executors.core.run();
  std::vector<config::ConfigError> out;
  for (std::size_t i = 0; i < whys.size(); ++i) {
    const auto& use = config.program_uses[i];
    const std::string what = "backend '" + use.backend + "', setting '" + use.setting + "': " + whys[i];
    if (!whys[i].empty()) out.push_back({config.file, use.at, what, {}, {}, {}});
  }
  return out;
}

}  // namespace driftd::app
