// SPDX-License-Identifier: Apache-2.0
// Reads `change_log:`.
#include "config/change_log.hpp"

#include <algorithm>

#include "config/parts.hpp"
#include "core/value/path.hpp"

namespace driftd::config {
namespace {

std::string read_file_path(Section& section, std::string_view key) {
  const std::string path = section.text(key);
  return path.empty() ? path : beside_config(section.report(), path);
}

void read_target_tls(Section section, rpc::ChangeLogTarget& to) {
  to.cert = read_file_path(section, "cert");
  to.key = read_file_path(section, "key");
  to.ca = read_file_path(section, "ca");
  section.close();
}

void read_target(Section& section, rpc::ChangeLogTarget& to) {
  to.socket = read_file_path(section, "socket");
  to.address = section.text("address");
  read_target_tls(section.section("tls"), to);
  Report& report = section.report();
  if (!to.socket.empty() && !to.address.empty()) {
    report.error(section.at("address"), "'change_log' has 'socket' and 'address'", "one of them", "",
                 "entries go to one receiver; let it forward them");
  }
  const bool pair = !to.cert.empty() && !to.key.empty();
  if (!to.address.empty() && !pair) {
    report.error(section.at("address"), "'address' of 'change_log' needs mutual TLS", "tls: { cert, key, ca }", "",
                 "entries hold whole resources, so they cross a network only encrypted and between known programs");
  }
  if (to.address.empty() && (pair || !to.ca.empty())) {
    report.error(section.at("tls"), "'tls' of 'change_log' is for 'address', and there is none",
                 "address: HOST:PORT, or no 'tls'");
  }
  if (to.socket.empty() && to.address.empty()) to.socket = ChangeLog::kSocket;
}

}  // namespace

bool ChangeLog::logs(const std::string& provider) const {
  return std::any_of(providers.begin(), providers.end(), [&](const std::string& glob) {
    return core::Glob::of_name(glob).matches(std::string_view(provider));
  });
}

ChangeLog read_change_log(Section section, const LoadOptions& options) {
  ChangeLog out;
  out.providers = section.texts("providers");
  if (section.present() && section.find("providers") == nullptr) out.providers = {"*"};
  read_target(section, out.target);
  out.max_backlog_bytes = section.bytes("max_backlog_bytes", out.max_backlog_bytes, 1 << 20);
  section.close();
  out.enabled = options.change_logs;
  out.providers.insert(out.providers.end(), out.enabled.begin(), out.enabled.end());
  return out;
}

}  // namespace driftd::config
