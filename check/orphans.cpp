// SPDX-License-Identifier: Apache-2.0
#include "check/orphans.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace driftd::check {
namespace {

namespace fs = std::filesystem;

struct Process {
  std::string name;
  pid_t parent = 0;
};

/// Parses /proc/PID/stat: `4711 (name) S parent …`. The name may contain any character, including `)`.
Process parse_stat(const std::string& stat) {
  const auto begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end + 4 >= stat.size()) return {};
  return {stat.substr(begin + 1, end - begin - 1), static_cast<pid_t>(std::atol(stat.c_str() + end + 4))};
}

Process read_process(const fs::path& folder) {
  std::ifstream in(folder / "stat");
  std::string stat;  // empty if the process ended before the file was opened or read
  std::getline(in, stat, '\0');
  return parse_stat(stat);
}

std::set<pid_t> children() {
  std::set<pid_t> out;
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    if (read_process(at->path()).parent == ::getpid()) out.insert(static_cast<pid_t>(std::stol(name)));
  }
  return out;
}

}  // namespace

Orphans::Orphans() : before_(children()) { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::string Orphans::end() const {
  constexpr int kRounds = 100, kDying = 20, kRoundMs = 10;
  std::string first;
  for (int round = 0; round < kRounds; ++round) {
    bool alive = false;
    for (const pid_t pid : children()) {
      if (before_.contains(pid) || ::waitpid(pid, nullptr, WNOHANG) != 0) continue;
      alive = true;
      if (round < kDying) continue;  // it was killed with its group and may not be gone yet
      if (first.empty()) first = fmt::format("process {} ({})", pid, read_process(fmt::format("/proc/{}", pid)).name);
      ::kill(pid, SIGKILL);
    }
    if (!alive) break;
    (void)::poll(nullptr, 0, kRoundMs);
  }
  return first;
}

}  // namespace driftd::check
