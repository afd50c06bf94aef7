// SPDX-License-Identifier: Apache-2.0
// Reads `resolve:`.
#include <algorithm>
#include <limits>

#include "config/parts.hpp"
#include "core/value/path.hpp"

namespace driftd::config {
namespace {

constexpr const char* kCallers = "one of 'uid', 'group', 'certificate' and 'token'";

void check_certificate(Section& section, const ResolveGrant& grant, const rpc::Settings& grpc) {
  if (grant.certificate.empty() || !grpc.client_ca.empty()) return;
  section.report().error(section.at("certificate"), section.title() + " is for a certificate, and nobody can show one",
                         "grpc.tls.client_ca");
}

void check_token(Section& section, const ResolveGrant& grant, const Config& config) {
  if (grant.token.empty()) return;
  const rpc::Settings& grpc = config.grpc;
  const auto same = [&](const auto& token) { return token.name == grant.token; };
  const bool known = std::any_of(grpc.tokens.begin(), grpc.tokens.end(), same);
  Report& report = section.report();
  if (!known && config.secrets_resolved) {  // tokens are known only then
    report.error(section.at("token"), section.title() + " is for a token that does not exist",
                 "the name of one of grpc.tokens", "'" + grant.token + "'");
  } else if (!grpc.listen.empty() && grpc.cert.empty()) {
    report.error(section.at("token"), section.title() + " is for a token, which would be sent in clear text",
                 "grpc.tls, because values are never sent over plain TCP");
  }
}

/// Without `grpc.register`, under which any name may be registered later.
void check_backends(Section& section, const ResolveGrant& grant, const std::vector<core::BackendSpec>& backends) {
  for (const auto& glob : grant.backends) {
    const core::Glob names = core::Glob::of_name(glob);
    const auto matches = [&](const auto& backend) { return names.matches(std::string_view(backend.name)); };
    if (std::any_of(backends.begin(), backends.end(), matches)) continue;
    section.report().warn(section.at("backends"), "'" + glob + "' matches no backend of this agent",
                          "only references in the settings of configured backends can be resolved");
  }
}

ResolveGrant read_grant(Section section, const Config& config) {
  ResolveGrant out;
  if (section.find("uid") != nullptr) {
    out.uid = static_cast<std::uint32_t>(section.integer("uid", 0, 0, std::numeric_limits<std::uint32_t>::max() - 1ll));
  }
  out.group = section.text("group");
  out.certificate = section.text("certificate");
  out.token = section.text("token");
  out.backends = section.texts("backends");
  section.close();
  const int callers =
      (out.uid ? 1 : 0) + (out.group.empty() ? 0 : 1) + (out.certificate.empty() ? 0 : 1) + (out.token.empty() ? 0 : 1);
  if (callers != 1) {
    section.report().error(section.at(), section.title() + " must name its caller", kCallers,
                           std::to_string(callers) + " of them");
  }
  if (out.backends.empty()) {
    section.report().error(section.at(), section.title() + " names no backend", "backends: [NAME or glob, …]");
  }
  check_certificate(section, out, config.grpc);
  check_token(section, out, config);
  if (!config.grpc.manual_on) check_backends(section, out, config.backends);
  return out;
}

}  // namespace

Resolve read_resolve(Section section, const Config& config) {
  Resolve out;
  for (const Node* item : section.items("grants")) {
    out.grants.push_back(
        read_grant(Section(section.report(), item, "resolve.grants[]", "a grant of 'resolve'"), config));
  }
  out.per_minute = static_cast<int>(section.integer("per_minute", out.per_minute, 1, 60'000));
  section.close();
  return out;
}

}  // namespace driftd::config
