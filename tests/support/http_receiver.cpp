// SPDX-License-Identifier: Apache-2.0
#include "support/http_receiver.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace driftd::test {
namespace {

bool listens(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

std::string decode_base64(const std::string& text) {
  static const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned buffer = 0;
  int bits = 0;
  for (const char ch : text) {
    const auto value = alphabet.find(ch);
    if (value == std::string::npos) break;
    buffer = (buffer << 6 | static_cast<unsigned>(value)) & 0xffffff;
    bits += 6;
    if (bits >= 8) out += static_cast<char>(buffer >> (bits -= 8) & 0xff);
  }
  return out;
}

}  // namespace

HttpReceiver::HttpReceiver(std::vector<HttpScripted> answers, HttpReceiverTls tls)
    : port_(free_port()),
      answers_(std::move(answers)),
      tls_(std::move(tls)) {
  start();
}

void HttpReceiver::start() {
  nlohmann::json script;
  for (const auto& answer : answers_) {
    script["answers"].push_back({{"status", answer.status},
                                 {"headers", answer.headers},
                                 {"delay_ms", answer.delay_ms},
                                 {"size", answer.size},
                                 {"trick", answer.trick},
                                 {"only_for", answer.only_for}});
  }
  if (!tls_.cert.empty()) script["tls"] = {{"cert", tls_.cert}, {"key", tls_.key}, {"client_ca", tls_.client_ca}};
  const std::string file = dir_.write("script.json", script.dump());
  child_ =
      Child({"python3", DRIFTD_SOURCE_DIR "/tests/support/http_receiver.py", std::to_string(port_), file, log_file()},
            {dir_.file("receiver.log"), {}, {}});
  if (!eventually([this] { return listens(port_); })) throw std::runtime_error(read_file(dir_.file("receiver.log")));
}

std::string HttpReceiver::url(const std::string& path) const {
  return std::string(tls_.cert.empty() ? "http" : "https") + "://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<HttpReceived> HttpReceiver::received() const {
  std::vector<HttpReceived> out;
  std::istringstream lines(read_file(log_file()));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) break;  // the line is still being written
    HttpReceived request;
    request.path = json["path"];
    request.headers = json["headers"].get<std::map<std::string, std::string>>();
    request.body = decode_base64(json["body"]);
    request.status = json["status"];
    request.peer = json.value("peer", "");
    request.version = json.value("version", "");
    const std::chrono::duration<double> at(json.value("at", 0.0));  // both clocks are CLOCK_MONOTONIC
    request.at += std::chrono::duration_cast<std::chrono::steady_clock::duration>(at);
    out.push_back(std::move(request));
  }
  return out;
}

}  // namespace driftd::test
