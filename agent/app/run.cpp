// SPDX-License-Identifier: Apache-2.0
// `driftd run`: signals, hardening, start and stop of the agent.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "app/agent.hpp"
#include "app/app.hpp"
#include "app/grpc.hpp"
#include "base/async_mutex.hpp"
#include "base/end_process.hpp"
#include "base/escape.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "cli/exit_codes.hpp"

namespace driftd::app {
namespace {

using cli::kConfig;
using cli::kUnreachable;

/// Makes new files private to the user, and closed sockets raise no signal.
void set_process_defaults() {
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
}

/// Returns the number of io threads. A NATS server that stops reading blocks one of them for as long as a write may
/// take, and so does a Kafka cluster that does not answer; so each sink of these types adds one.
std::size_t io_threads(const config::Config& config) {
  constexpr std::ptrdiff_t kMaxMore = 28;
  const auto blocks = [](const config::SinkSpec& sink) { return sink.type == "nats" || sink.type == "kafka"; };
  const auto more = std::count_if(config.sinks.begin(), config.sinks.end(), blocks);
  return Executors::kIo + static_cast<std::size_t>(std::min(more, kMaxMore));
}

struct RunState {
  Agent& agent;
  Executors& executors;
  asio::signal_set ending, reloading;
  AsyncMutex listening;  ///< held by listen_for_reload() while it runs
  int exit = 0;
  bool starting = true, stopping = false;
};

Task<void> shut_down(RunState& state) {
  state.agent.ask_to_stop();
  if (state.starting || state.stopping) co_return;  // start_agent() calls this when start() has returned
  state.stopping = true;
  sd_notify(0, "STOPPING=1");
  co_await state.agent.stop();
  if (state.agent.abandoned()) end_process(state.exit);  // its threads cannot be joined; as safe as a kill
  state.reloading.cancel();
  // waits for a reload that is under way; until then a second signal still ends the process at once
  const AsyncMutex::Guard done = co_await state.listening.lock();
  state.ending.cancel();
}

Task<void> start_agent(RunState& state) {
  const Status started = co_await state.agent.start();
  state.starting = false;
  if (!started && started.error().code == Code::cancelled) {
    co_await shut_down(state);
    co_return;
  }
  if (!started) {
    std::fprintf(stderr, "driftd: %s\n", escaped(started.error().message).c_str());
    state.exit = started.error().code == Code::invalid ? kConfig : kUnreachable;
    co_await shut_down(state);
    co_return;
  }
  log::room("app").info("driftd {} is running", DRIFTD_VERSION);
  sd_notify(0, "READY=1");
}

Task<void> listen_for_end(RunState& state) {
  const auto [error, number] = co_await state.ending.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return;
  log::room("app").info("{}: draining; a second one ends at once", number == SIGINT ? "SIGINT" : "SIGTERM");
  asio::co_spawn(state.executors.core, shut_down(state), fatal);
  const auto [again, second] = co_await state.ending.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!again) ::_exit(128 + second);
}

Task<void> listen_for_reload(RunState& state) {
  const AsyncMutex::Guard here = co_await state.listening.lock();
  while (!state.stopping) {
    const auto [error, number] = co_await state.reloading.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error || state.stopping) co_return;
    (void)number;
    (void)co_await state.agent.reload();  // the agent has logged a refusal
  }
}

}  // namespace

void harden() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

int run(const std::string& config_file, const std::vector<std::string>& change_logs) {
  StepTimes times;
  harden();
  limit_heap_growth();
  set_process_defaults();
  config::LoadOptions options;
  options.change_logs = change_logs;
  auto config = config::load(config_file, options);
  if (!config) {
    std::fprintf(stderr, "%s\n", config::render(config.error()).c_str());
    return kConfig;
  }
  if (const Status grpc = become_driftd_grpc(*config); !grpc) {
    std::fprintf(stderr, "driftd: %s\n", escaped(grpc.error().message).c_str());
    return kConfig;
  }
  log::configure(config->log);
  for (const auto& warning : config->warnings) log::room("config").warn("{}", config::render(warning));
  Executors executors(io_threads(*config));
  times.end("configuration");
  auto agent = Agent::build(std::move(*config), executors, std::move(times));
  if (!agent) {
    std::fprintf(stderr, "driftd: %s\n", escaped(agent.error().message).c_str());
    return agent.error().code == Code::invalid ? kConfig : kUnreachable;
  }
  RunState state{**agent, executors, asio::signal_set(executors.core, SIGTERM, SIGINT),
                 asio::signal_set(executors.core, SIGHUP), AsyncMutex(executors.core.get_executor())};
  asio::co_spawn(executors.core, listen_for_end(state), fatal);
  asio::co_spawn(executors.core, listen_for_reload(state), fatal);
  asio::co_spawn(executors.core, start_agent(state), fatal);
  executors.core.run();
  return state.exit;
}

}  // namespace driftd::app
