// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace driftd::http::testing {
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

}  // namespace

Server::Server(const std::vector<std::string>& tls) : port_(test::free_port()), tls_(!tls.empty()) {
  std::vector<std::string> command{"python3", DRIFTD_SOURCE_DIR "/tests/unit/http/server.py", std::to_string(port_)};
  command.insert(command.end(), tls.begin(), tls.end());
  child_ = test::Child(command, {dir_.file("log"), {}, {}});
  if (!test::eventually([this] { return listens(port_); })) throw std::runtime_error(test::read_file(dir_.file("log")));
}

std::string Server::url(const std::string& path, const std::string& host) const {
  return (tls_ ? "https://" : "http://") + host + ":" + std::to_string(port_) + path;
}

Certificates::Certificates() {
  const auto openssl = [this](std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    const auto done = test::run(words);
    if (done.code != 0) throw std::runtime_error(done.err);
  };
  for (const std::string ca : {"ca", "other"}) {
    openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=" + ca, "-keyout", file(ca + ".key"), "-out", file(ca + ".pem")});
  }
  dir_.write("names", "subjectAltName=DNS:localhost\n");
  for (const std::string who : {"server", "client"}) {
    openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + who,
             "-keyout", file(who + ".key"), "-out", file(who + ".csr")});
    openssl({"x509", "-req", "-in", file(who + ".csr"), "-CA", file("ca.pem"), "-CAkey", file("ca.key"),
             "-CAcreateserial", "-days", "2", "-extfile", file("names"), "-out", file(who + ".pem")});
  }
}

}  // namespace driftd::http::testing
