// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <thread>

#include "base/log.hpp"
#include "resolver/resolver.hpp"
#include "resolver/settings.hpp"

int main(int argc, char** argv) {
  auto line = driftd::resolver::read_command_line(argc, argv);
  if (!line.settings) return line.exit_code;
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);  // all threads; one waits for them
  driftd::log::configure({line.settings->log_level, line.settings->log_format, {}});
  std::stop_source stop;
  std::thread([ending, stop]() mutable {
    int signal = 0;
    sigwait(&ending, &signal);
    stop.request_stop();
  }).detach();
  return driftd::resolver::run(std::move(*line.settings), stop.get_token());
}
