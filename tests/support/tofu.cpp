// SPDX-License-Identifier: Apache-2.0
#include "support/tofu.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <filesystem>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace driftd::test {
namespace {

using std::chrono::minutes;

std::string last_line_of(const std::vector<std::string>& command) {
  const Output out = run(command, {}, minutes(20));
  if (out.code != 0) throw std::runtime_error(command[0] + ": " + out.err);
  std::string text = out.out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

const std::string& binary() {
  static const std::string path = last_line_of({DRIFTD_SOURCE_DIR "/tests/servers/tofu/build.sh"});
  return path;
}

/// Sends a request and waits for the first bytes of the answer. Returns false if nobody listens or answers. An empty
/// request only connects.
bool send_to(int port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool done = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  char answer[256];
  if (done && !request.empty()) {
    done = ::write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size()) &&
           ::read(fd, answer, sizeof answer) > 0;
  }
  ::close(fd);
  return done;
}

}  // namespace

Tofu::Tofu(std::map<std::string, std::string> env) : env_(std::move(env)) {
  env_["TF_CLI_CONFIG_FILE"] = dir_.write("cli.rc", "");
  env_["CHECKPOINT_DISABLE"] = "1";
  env_["TF_IN_AUTOMATION"] = "1";
}

void Tofu::configure(const std::string& resources, const std::string& backend) {
  dir_.write("main.tf", "terraform {\n" + backend + "\n}\n" + resources);
  run({"init", "-reconfigure"});
}

std::string Tofu::run(const std::vector<std::string>& words) const {
  std::vector<std::string> command = {binary(), "-chdir=" + dir_.path().string()};
  command.insert(command.end(), words.begin(), words.end());
  command.push_back("-no-color");
  const Output out = test::run(command, env_, minutes(2));
  if (out.code != 0) throw std::runtime_error("tofu " + words[0] + ":\n" + out.out + out.err);
  return out.out;
}

std::string Tofu::state_file(const std::string& workspace) const {
  return dir_.file(workspace.empty() ? "terraform.tfstate" : "terraform.tfstate.d/" + workspace + "/terraform.tfstate");
}

StateServer::StateServer() : port_(free_port()) {
  child_ = Child(
      {"python3", DRIFTD_SOURCE_DIR "/tests/servers/state/server.py", std::to_string(port_), dir_.path().string()},
      {dir_.file("server.log"), {}, {}});
  if (!eventually([this] { return send_to(port_, {}); })) throw std::runtime_error(read_file(dir_.file("server.log")));
}

void StateServer::control(const nlohmann::json& how) const {
  const std::string body = how.dump();
  const bool sent = send_to(port_, "POST /_control HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: " +
                                       std::to_string(body.size()) + "\r\n\r\n" + body);
  if (!sent) throw std::runtime_error("the state server does not answer: " + read_file(dir_.file("server.log")));
}

std::vector<std::string> StateServer::requests() {
  std::vector<std::string> all;
  std::istringstream lines(read_file(dir_.file("requests.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) break;  // the line is still being written
    all.push_back(json["method"].get<std::string>() + " " + json["path"].get<std::string>() + " " +
                  json["status"].dump());
  }
  std::vector<std::string> fresh(all.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, all.size())), all.end());
  seen_ = all.size();
  return fresh;
}

Front::Front(int server_port, const nlohmann::json& how) : port_(free_port()) {
  behave(how);
  child_ = Child({"python3", DRIFTD_SOURCE_DIR "/tests/servers/state/front.py", std::to_string(port_),
                  std::to_string(server_port), dir_.file("how.json")},
                 {dir_.file("front.log"), {}, {}});
  if (!eventually([this] { return send_to(port_, {}); })) throw std::runtime_error(read_file(dir_.file("front.log")));
}

void Front::behave(const nlohmann::json& how) const {
  std::filesystem::rename(dir_.write("new.json", how.dump()), dir_.path() / "how.json");
}

Moto::Moto(bool strict) : port_(free_port()) {
  static const std::string python = last_line_of({DRIFTD_SOURCE_DIR "/tests/support/venv.sh", "moto[server]==5.1.5"});
  const std::string file = dir_.file("keys.json");
  child_ = Child({python, DRIFTD_SOURCE_DIR "/tests/servers/moto/serve.py", std::to_string(port_), file,
                  strict ? "strict" : "open"},
                 {dir_.file("moto.log"), {}, {}});
  const bool up = eventually(
      [&] {
        keys_ = nlohmann::json::parse(read_file(file), nullptr, false);
        return keys_.is_object();
      },
      std::chrono::seconds(60));
  if (!up) throw std::runtime_error("moto did not start: " + read_file(dir_.file("moto.log")));
}

std::vector<std::string> Moto::requests() {
  // werkzeug writes `"GET /path HTTP/1.1" 200`, with escape sequences for colours inside the quotes
  static const std::regex line("([A-Z]+ /[^ ]*) HTTP/1\\.1[^ ]*\" ([0-9]{3})");
  const std::string log = read_file(dir_.file("moto.log"));
  std::vector<std::string> all;
  for (std::sregex_iterator it(log.begin(), log.end(), line), end; it != end; ++it)
    all.push_back((*it)[1].str() + " " + (*it)[2].str());
  std::vector<std::string> fresh(all.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, all.size())), all.end());
  seen_ = all.size();
  return fresh;
}

}  // namespace driftd::test
