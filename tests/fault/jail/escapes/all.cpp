// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "escapes.hpp"

namespace driftd::escapes {

std::vector<Attempt> attempts() {
  std::vector<Attempt> out;
  for (auto part :
       {program_attempts, process_attempts, file_attempts, change_attempts, socket_attempts, kernel_attempts}) {
    for (const auto& attempt : part()) out.push_back(attempt);
  }
  return out;
}

int try_open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

bool is_blocked(int error) { return error == EPERM || error == EACCES || error == ENOSYS || error == EAFNOSUPPORT; }

Targets parse_targets(const std::string& json) {
  const auto in = nlohmann::json::parse(json);
  Targets out;
  out.agent = in.value("agent", 0);
  out.sibling = in.value("sibling", 0);
  out.data_dir = in.value("data_dir", "");
  out.plugin_folder = in.value("plugin_folder", "");
  out.outside = in.value("outside", "");
  out.agent_socket = in.value("agent_socket", "");
  out.datagram_socket = in.value("datagram_socket", "");
  out.abstract_name = in.value("abstract_name", "");
  out.own_library = in.value("own_library", "");
  return out;
}

std::string render_targets(const Targets& t) {
  return nlohmann::json{{"agent", t.agent},
                        {"sibling", t.sibling},
                        {"data_dir", t.data_dir},
                        {"plugin_folder", t.plugin_folder},
                        {"outside", t.outside},
                        {"agent_socket", t.agent_socket},
                        {"datagram_socket", t.datagram_socket},
                        {"abstract_name", t.abstract_name},
                        {"own_library", t.own_library}}
      .dump();
}

}  // namespace driftd::escapes
