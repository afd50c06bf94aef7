// SPDX-License-Identifier: Apache-2.0
// driftd-provider-host FD AGENT_PID: one plugin instance in a process of its own. Started by the agent only.
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

#include "host/jail.hpp"
#include "host/provider_host.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("driftd-provider-host is started by driftd, not by hand\n", stderr);
    return 2;
  }
  const int fd = std::atoi(argv[1]);
  const auto jailed = driftd::host::enter_jail(fd, static_cast<pid_t>(std::atol(argv[2])));
  if (!jailed) {
    std::fprintf(stderr, "%s\n", jailed.error().message.c_str());
    return 3;
  }
  auto* host = new driftd::host::ProviderHost(fd);  // its end is the end of the process: no destructor of a plugin runs
  const auto served = host->serve();
  if (!served) std::fprintf(stderr, "worker: %s\n", served.error().message.c_str());
  ::_exit(served ? 0 : 4);
}
