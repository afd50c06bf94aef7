// SPDX-License-Identifier: Apache-2.0
// Reads `grpc:`.
#include <algorithm>

#include "base/digest.hpp"
#include "config/parts.hpp"
#include "config/secrets.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

const std::vector<std::string> kRights = {"read", "decide"};
constexpr std::size_t kMinToken = 16;  // bytes

rpc::Rights rights_of(const std::string& text) { return text == "decide" ? rpc::Rights::decide : rpc::Rights::read; }

unsigned read_mode(Section& section) {
  const std::string text = section.choice("socket_mode", "0660", {"0600", "0660", "0666"});
  return text == "0600" ? 0600 : text == "0666" ? 0666 : 0660;
}

/// Returns the absolute path of a file; empty if the key is missing.
std::string read_path(Section& section, std::string_view key) {
  const std::string path = section.text(key);
  return path.empty() ? path : beside_config(section.report(), path);
}

void check_pair(Section& section, const std::string& cert, const std::string& key) {
  if (cert.empty() == key.empty()) return;
  section.report().error(section.at(), section.title() + " has only one of 'cert' and 'key'", "both or none");
}

/// The token itself must not be in the file: only a reference is accepted, and only its digest is kept.
std::string read_token(Section& section, const LoadOptions& options) {
  const Node* node = section.find("token");
  Report& report = section.report();
  if (node == nullptr || node->kind != Node::Kind::scalar || !looks_like_reference(node->text)) {
    report.error(section.at("token"), "'token' of " + section.title() + " is not a reference",
                 "${file:PATH}, ${env:NAME} or ${credential:NAME} as the whole value", "",
                 "put the token into a file that only the agent may read");
    return {};
  }
  if (!options.resolve_secrets) return {};
  const std::string token = SettingsReader(report, options, "grpc").read_reference(*node);
  if (token.size() >= kMinToken) return sha256(token);
  report.error(node->at, "'token' of " + section.title() + " is too short to be safe", "16 bytes or more",
               std::to_string(token.size()) + " bytes", "`openssl rand -hex 32` makes one");
  return {};
}

void read_tokens(Section& section, const LoadOptions& options, rpc::Settings& out) {
  for (const Node* item : section.items("tokens")) {
    Section one(section.report(), item, "grpc.tokens[]", "a token of 'grpc'");
    rpc::Settings::Token token;
    token.name = one.required_text("name", "who has it");
    token.rights = rights_of(one.choice("rights", "read", kRights));
    token.sha256 = read_token(one, options);
    one.close();
    if (!token.sha256.empty()) out.tokens.push_back(std::move(token));
  }
}

void read_callbacks(Section section, rpc::Settings& out) {
  out.callback_allow = section.texts("allow");
  out.callback_ca = read_path(section, "ca");
  out.callback_cert = read_path(section, "cert");
  out.callback_key = read_path(section, "key");
  check_pair(section, out.callback_cert, out.callback_key);
  section.close();
}

void read_tls(Section section, rpc::Settings& out) {
  out.cert = read_path(section, "cert");
  out.key = read_path(section, "key");
  out.client_ca = read_path(section, "client_ca");
  check_pair(section, out.cert, out.key);
  if (out.cert.empty() && !out.client_ca.empty()) {
    section.report().error(section.at("client_ca"), section.title() + " has 'client_ca' without 'cert' and 'key'",
                           "all three");
  }
  section.close();
}

void read_register(Section section, rpc::Settings& out) {
  out.manual_on = section.present();
  if (section.find("providers") != nullptr) out.manual.providers = section.texts("providers");
  out.manual.references = section.texts("references");
  section.close();
}

}  // namespace

rpc::Settings read_grpc(Section section, const LoadOptions& options) {
  rpc::Settings out;
  out.present = section.present();
  out.socket = section.text("socket");
  out.socket_mode = read_mode(section);
  out.listen = section.text("listen");
  read_tls(section.section("tls"), out);
  out.allow_plain_loopback = section.boolean("allow_plain_loopback", false);
  for (const auto& [glob, text] : section.text_map("clients")) {
    if (std::find(kRights.begin(), kRights.end(), text) == kRights.end()) {
      section.report().error(section.at("clients"), "'clients' of 'grpc' gives '" + glob + "' unknown rights",
                             one_of(kRights), "'" + text + "'");
    }
    out.clients[glob] = rights_of(text);
  }
  if (out.clients.empty() && !out.client_ca.empty()) out.clients["*"] = rpc::Rights::read;
  read_tokens(section, options, out);
  read_callbacks(section.section("callbacks"), out);
  read_register(section.section("register"), out);
  out.max_streams = static_cast<int>(section.integer("max_streams", out.max_streams, 1, 4'096));
  out.heartbeat = section.duration("heartbeat", out.heartbeat, milliseconds(1'000), milliseconds(3'600'000));
  section.close();
  if (!out.present) return out;
  if (out.socket.empty() && out.listen.empty()) {
    section.report().error(section.at(), "'grpc' has neither 'socket' nor 'listen'", "one of them, or both");
  }
  return out;
}

}  // namespace driftd::config
