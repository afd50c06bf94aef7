// SPDX-License-Identifier: Apache-2.0
#include "integration/syslog/rsyslog.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace driftd::test {
namespace {

constexpr const char* kConfig = R"(
global(workDirectory="{0}" maxMessageSize="256k" defaultNetstreamDriver="ossl"
       defaultNetstreamDriverCAFile="{1}" defaultNetstreamDriverCertFile="{2}" defaultNetstreamDriverKeyFile="{3}")
module(load="imtcp")
module(load="imudp")
module(load="imuxsock" SysSock.Use="off")
template(name="raw" type="string" string="%rawmsg%\n")
ruleset(name="keep" queue.type="direct") {{ action(type="omfile" file="{4}" template="raw" flushOnTXEnd="on") }}
input(type="imtcp" address="127.0.0.1" port="{5}" ruleset="keep" streamDriver.name="ptcp")
input(type="imtcp" address="127.0.0.1" port="{6}" ruleset="keep" streamDriver.name="ossl" streamDriver.mode="1"
      streamDriver.authMode={8})
input(type="imtcp" address="127.0.0.2" port="{6}" ruleset="keep" streamDriver.name="ossl" streamDriver.mode="1"
      streamDriver.authMode={8})
input(type="imudp" address="127.0.0.1" port="{7}" ruleset="keep")
input(type="imuxsock" Socket="{9}" UseSpecialParser="off" ruleset="keep")
)";

std::string python() {
  const Output made =
      run({DRIFTD_SOURCE_DIR "/tests/support/venv.sh", "syslog-rfc5424-parser==0.3.2"}, {}, std::chrono::seconds(120));
  if (made.code != 0) throw std::runtime_error("no venv: " + made.err);
  return made.out.substr(0, made.out.find('\n'));
}

}  // namespace

Rsyslog::Rsyslog(const Certificates& certificates, bool client_certificates)
    : tcp_(free_port()),
      tls_(free_port()),
      udp_(free_port()),
      socket_(dir_.file("log.sock")),
      out_(dir_.file("messages")) {
  certificates.issue("rsyslog", "localhost", "DNS:localhost,IP:127.0.0.1");
  config_ =
      dir_.write("rsyslog.conf",
                 fmt::format(kConfig, dir_.path().string(), certificates.ca(), certificates.certificate("rsyslog"),
                             certificates.key("rsyslog"), out_, tcp_, tls_, udp_,
                             client_certificates ? R"("x509/name" permittedPeer=["driftd"])" : R"("anon")", socket_));
  start();
}

void Rsyslog::start() {
  child_ = Child({"/usr/sbin/rsyslogd", "-n", "-f", config_, "-i", dir_.file("pid")}, {dir_.file("log"), {}, {}});
  const auto listens = [this] {
    const std::string out = run({"ss", "-Hltn"}).out;
    return out.find(":" + std::to_string(tcp_) + " ") != std::string::npos &&
           out.find(":" + std::to_string(tls_) + " ") != std::string::npos;
  };
  if (!eventually(listens)) throw std::runtime_error("rsyslogd does not listen: " + log());
}

void Rsyslog::stop() {
  child_.signal(SIGTERM);
  child_.wait(std::chrono::seconds(10));
}

std::string Rsyslog::raw() const { return std::filesystem::exists(out_) ? read_file(out_) : std::string(); }

std::size_t Rsyslog::count() const {
  const std::string text = raw();
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<nlohmann::json> Rsyslog::messages() const { return parse_messages(out_); }

std::vector<nlohmann::json> parse_messages(const std::string& file) {
  static const std::string interpreter = python();
  const Output parsed = run({interpreter, DRIFTD_SOURCE_DIR "/tests/integration/syslog/parse_messages.py", file});
  if (parsed.code != 0) throw std::runtime_error("a message is not RFC 5424: " + parsed.err);
  std::vector<nlohmann::json> out;
  std::istringstream lines(parsed.out);
  for (std::string line; std::getline(lines, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

std::string Rsyslog::log() const { return read_file(dir_.file("log")); }

}  // namespace driftd::test
