// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/certificates.hpp"
#include "support/process.hpp"

namespace driftd::test {

/// Returns the messages of a file, one a line, as an independent parser reads them. Throws if it refuses one.
std::vector<nlohmann::json> parse_messages(const std::string& file);

/// A real rsyslogd in a temporary folder, with ports for TCP, TLS and UDP and a Unix datagram socket. It writes what it
/// received, byte for byte, one message a line.
class Rsyslog {
 public:
  /// `client_certificates`: TLS clients must show a certificate of this authority for the name `driftd`.
  explicit Rsyslog(const Certificates& certificates, bool client_certificates = false);
  void start();
  void stop();  ///< SIGTERM, by its own pid

  int tcp() const { return tcp_; }
  int tls() const { return tls_; }  ///< also at 127.0.0.2, which its certificate does not name
  int udp() const { return udp_; }
  const std::string& socket() const { return socket_; }
  std::string raw() const;                       ///< what it wrote so far
  std::size_t count() const;                     ///< messages in it
  std::vector<nlohmann::json> messages() const;  ///< parsed by an independent parser; throws if it refuses one
  std::string log() const;

 private:
  TempDir dir_;
  int tcp_, tls_, udp_;
  std::string socket_, config_, out_;
  Child child_;
};

}  // namespace driftd::test
