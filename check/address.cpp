// SPDX-License-Identifier: Apache-2.0
#include "check/address.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "check/unix_socket.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

const std::regex& host_port() {
  static const std::regex kPattern(R"((\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?):[0-9]{1,5})");
  return kPattern;
}
const std::regex& url() {
  static const std::regex kPattern(
      R"(([A-Za-z][A-Za-z0-9+.-]*://)([^/@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/:?#\s]+)(:[0-9]+)?([/?#].*)?)");
  return kPattern;
}

bool sounds_like_address(const std::string& name, const Json& schema) {
  static constexpr std::array<const char*, 9> kWords = {"address", "endpoint", "host",      "url", "uri",
                                                        "server",  "broker",   "bootstrap", "node"};
  if (schema.value("writeOnly", false) || schema.contains("format")) return false;
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

class PeerReplacer {
 public:
  PeerReplacer(const Subject& subject, const std::string& host, int port)
      : subject_(subject),
        host_(host),
        port_(port) {}

  /// Replaces the peers in place. Returns true if at least one was found.
  bool replace(Json& json) const {
    if (json.is_string()) return replace_text(json);
    bool found = false;
    if (json.is_array()) {
      for (auto& item : json) found |= replace(item);
    } else if (json.is_object()) {
      found |= replace_pair(json);
      for (auto& item : json.items()) found |= replace(item.value());
    }
    return found;
  }

  /// Returns values that an address setting might accept.
  std::vector<Json> candidates(const Json& schema) const {
    const std::string plain = fmt::format("{}:{}", host_, port_), web = "http://" + plain + "/";
    if (schema.value("type", "") == "array") return {Json::array({plain}), Json::array({web})};
    return {plain, web, host_};
  }

 private:
  bool replace_text(Json& json) const {
    const auto& text = json.get_ref<const std::string&>();
    if (subject_.secrets.contains(text)) return false;
    std::string other = replace_peer(text, host_, port_);
    if (other.empty()) return false;
    json = std::move(other);
    return true;
  }
  bool replace_pair(Json& object) const {
    const auto host = object.find("host"), port = object.find("port");
    if (host == object.end() || !host->is_string() || port == object.end() || !port->is_number_integer()) return false;
    *host = host_;
    *port = port_;
    return true;
  }
  const Subject& subject_;
  const std::string host_;
  const int port_;
};

int open_listener(BlackHole::Kind kind, int& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  const int backlog = kind == BlackHole::Kind::full ? 0 : 1024;
  if (fd < 0 || ::bind(fd, address, size) != 0 || (kind != BlackHole::Kind::refusing && ::listen(fd, backlog) != 0) ||
      ::getsockname(fd, address, &size) != 0) {
    throw CheckNotMade(fmt::format("no listening socket on loopback: {}", std::strerror(errno)));
  }
  port = ::ntohs(at.sin_port);
  return fd;
}

}  // namespace

BlackHole::BlackHole(Kind kind) : BlackHole(kind, Network::tcp, {}) {}

/// Fills the listener's accept queue.
void BlackHole::fill_tcp() {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  at.sin_port = ::htons(static_cast<std::uint16_t>(port_));
  for (int i = 0; i < 4; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    fillers_.push_back(fd);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
    pollfd up{fd, POLLOUT, 0};
    if (::poll(&up, 1, 200) == 0) break;
  }
}

BlackHole::BlackHole(Kind kind, Network network, const std::string& folder) {
  if (network == Network::tcp) {
    listener_ = open_listener(kind, port_);
    if (kind == Kind::full) fill_tcp();
    return;
  }
  static int number = 0;
  path_ = fmt::format("{}/{}-{}.hole", folder, ::getpid(), ++number);
  listen_at_unix_socket(kind, network);
}

void BlackHole::listen_at_unix_socket(Kind kind, Network network) {
  constexpr int kMaxFillers = 10'000;  // the kernel takes fewer
  const bool stream = network == Network::unix_stream;
  const int type = stream ? SOCK_STREAM : SOCK_DGRAM;
  listener_ = bind_unix_socket(path_, type);
  if (kind == Kind::refusing) {  // the file stays, and nobody is behind it
    ::close(std::exchange(listener_, -1));
    return;
  }
  if (stream) (void)::listen(listener_, kind == Kind::full ? 0 : 1024);
  if (kind != Kind::full) return;
  for (int fd = -1; stream && (fd = connect_unix_socket(path_, type)) >= 0;) fillers_.push_back(fd);
  if (stream) return;
  fillers_.push_back(connect_unix_socket(path_, type));
  for (int i = 0; i < kMaxFillers && ::send(fillers_.back(), "x", 1, MSG_NOSIGNAL) == 1; ++i) continue;
}

BlackHole::~BlackHole() {
  for (const int fd : fillers_) ::close(fd);
  if (listener_ >= 0) ::close(listener_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::string replace_peer(const std::string& text, const std::string& host, int port) {
  std::smatch found;
  if (std::regex_match(text, found, url())) {
    return found[1].str() + found[2].str() + fmt::format("{}:{}", host, port) + found[5].str();
  }
  const auto commas = std::count(text.begin(), text.end(), ',');
  const std::string first = text.substr(0, text.find(','));
  if (!std::regex_match(first, host_port())) return {};
  std::string out = fmt::format("{}:{}", host, port);
  for (std::ptrdiff_t i = 0; i < commas; ++i) out += fmt::format(",{}:{}", host, port);
  return out;
}

std::string settings_with_peer(const Subject& subject, const std::string& schema_text, const std::string& host,
                               int port) {
  const PeerReplacer replacer(subject, host, port);
  const Json given = Json::parse(subject.settings_json.empty() ? "{}" : subject.settings_json, nullptr, false);
  Json settings = given;
  if (replacer.replace(settings)) return settings.dump();
  const Json schema = Json::parse(schema_text, nullptr, false);
  bool any = false;
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) {
    if (!property.is_object() || !sounds_like_address(name, property)) continue;
    any = true;
    for (const auto& value : replacer.candidates(property)) {
      for (const Json& base : {given, Json::object()}) {  // the setting may exclude others that were given
        settings = base;
        settings[name] = value;
        const auto errors = ipc::validate_settings(schema_text, settings.dump());
        if (errors && errors->empty()) return settings.dump();
      }
    }
  }
  if (!any) throw CheckNotApplicable("has no setting that names a network peer");
  throw CheckNotMade("the settings name no network peer (host:port or a URL); give some that do");
}

}  // namespace driftd::check
