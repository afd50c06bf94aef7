// SPDX-License-Identifier: Apache-2.0
// driftd-provider-host FD AGENT_PID: runs one plugin instance in a process of its own. The protocol is at FD, the
// plugin's sealed bytes are at FD + 1. Only the agent starts it.
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

#include "base/memory.hpp"
#include "worker/jail.hpp"
#include "worker/provider_host.hpp"

namespace {

using namespace driftd;

Result<std::string> enter_jail(const ipc::Load& load) {
  worker::JailSpec jail;
  jail.read_paths = load.read_paths;
  jail.unix_sockets = load.unix_sockets;
  jail.kills = load.jail_kills;
  return worker::lock_process(jail);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("driftd-provider-host is started by driftd, not by hand\n", stderr);
    return 2;
  }
  limit_heap_growth();
  const int fd = std::atoi(argv[1]);
  const auto stripped = worker::strip_process(fd, static_cast<pid_t>(std::atol(argv[2])));
  if (!stripped) {
    std::fprintf(stderr, "%s\n", stripped.error().message.c_str());
    return 3;
  }
  // Never deleted: the process ends with it and no destructor of a plugin runs.
  auto* host = new worker::ProviderHost(fd, fd + 1, &enter_jail);
  const auto served = host->serve();
  if (!served) std::fprintf(stderr, "worker: %s\n", served.error().message.c_str());
  ::_exit(served ? 0 : 4);
}
