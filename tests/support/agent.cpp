// SPDX-License-Identifier: Apache-2.0
#include "support/agent.hpp"

#include <csignal>

namespace driftd::test {

std::string Agent::build(const std::string& path) { return std::string(DRIFTD_BINARY_DIR) + "/" + path; }
std::string Agent::binary() { return build("bin/driftd"); }

Agent::Agent(const TempDir& dir, std::string body, std::map<std::string, std::string> env,
             std::vector<std::string> plugin_dirs)
    : socket_(dir.file("driftd.sock")),
      data_(dir.file("data")),
      log_(dir.file("driftd.log")),
      port_(free_port()),
      env_(std::move(env)) {
  std::string dirs;
  for (const auto& plugin_dir : plugin_dirs) dirs += (dirs.empty() ? "\"" : ", \"") + plugin_dir + "\"";
  const std::string head = "agent:\n  name: test\n  data_dir: " + data_ + "\n  plugin_dirs: [" + dirs +
                           "]\nadmin:\n  listen: \"127.0.0.1:" + std::to_string(port_) + "\"\n  socket: " + socket_ +
                           "\n";
  config_ = dir.write("driftd.yaml", head + body);
}

void Agent::start(std::vector<std::string> wrapper) {
  wrapper.insert(wrapper.end(), {binary(), "run", "--config", config_});
  child_ = Child(std::move(wrapper), {log_, env_, {}});
}

int Agent::stop() {
  child_.signal(SIGTERM);
  return child_.wait(std::chrono::seconds(15));
}

Output Agent::cli(std::vector<std::string> words) const {
  std::vector<std::string> command{binary()};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"--socket", socket_});
  return run(command, env_);
}

nlohmann::json Agent::ask(std::vector<std::string> words) const {
  words.insert(words.end(), {"-o", "json"});
  const Output output = cli(std::move(words));
  return nlohmann::json::parse(output.out, nullptr, false);
}

std::vector<nlohmann::json> Agent::rows(std::vector<std::string> words) const {
  const nlohmann::json answer = ask(std::move(words));
  if (answer.is_array()) return answer.get<std::vector<nlohmann::json>>();
  if (!answer.is_object()) return {};
  for (const auto& [key, value] : answer.items()) {
    if (value.is_array()) return value.get<std::vector<nlohmann::json>>();
  }
  return {};
}

Found Agent::backend(const std::string& name) const {
  for (auto& row : rows({"backends"})) {
    if (row.value("name", "") == name) return row;
  }
  return std::nullopt;
}

bool Agent::established(const std::vector<std::string>& backends) const {
  for (const auto& name : backends) {
    const auto row = backend(name);
    if (!row || !row->contains("coverage") || row->at("coverage").empty()) return false;
    for (const auto& kind : row->at("coverage")) {
      if (!kind.value("established", false)) return false;
    }
  }
  return true;
}

}  // namespace driftd::test
