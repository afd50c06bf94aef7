// SPDX-License-Identifier: Apache-2.0
#include "keycloak/settings.hpp"

#include "common/settings_reader.hpp"

namespace driftd::keycloak {
namespace {

using common::SettingsReader;

constexpr std::chrono::minutes kMaxConnect{1}, kMaxCall{10}, kMaxPoll{10};
constexpr std::chrono::hours kMaxSweep{24}, kMaxOverlap{1};
constexpr std::uint64_t kMaxPage = 1000;  // of clients with 100 values each: what one answer may hold
constexpr std::size_t kMaxRealms = 500;   // the cursor has a position for each and must fit into 64 KiB

std::string read_url(SettingsReader& from) {
  std::string out = from.required_text("url", "the address of Keycloak, such as https://sso.example");
  while (!out.empty() && out.back() == '/') out.pop_back();
  if (!out.starts_with("https://") && !out.starts_with("http://"))
    from.refuse("url", "https://host[:port][/path]", "another form", "begin it with https://");
  return out;
}

Login read_login(SettingsReader from) {
  Login out;
  out.realm = from.text("realm", out.realm);
  out.client_secret_token = from.text("client_secret");
  out.username = from.text("username");
  out.password_token = from.text("password");
  const bool service = out.username.empty();
  if (service && out.client_secret_token.empty()) {
    from.refuse("client_secret", "client_id and client_secret, or username and password", "neither",
                "the README shows how to make a service account");
  }
  if (service && !out.password_token.empty()) from.refuse("password", "a username beside it", "only a password");
  out.client_id = service ? from.required_text("client_id", "the client whose service account reads")
                          : from.text("client_id", out.client_id);
  from.finish();
  return out;
}

http::Tls read_tls(SettingsReader from) {
  http::Tls out;
  out.ca_file = from.text("ca");
  out.certificate_file = from.text("certificate");
  out.key_file = from.text("key");
  out.server_name = from.text("server_name");
  out.verify = from.flag("verify", true);
  if (out.certificate_file.empty() != out.key_file.empty()) {
    from.refuse("certificate", "a certificate and its key, or neither", "only one of them",
                "add the other to " + from.where());
  }
  from.finish();
  return out;
}

/// The three switches of the Keycloak operator's ADR. The third is decided elsewhere in driftd, and says where.
void read_detection(SettingsReader from, Settings& out) {
  out.detection = from.flag("enabled", true);
  out.remediate = from.flag("auto_remediate", true);
  if (const auto hours = from.number("minimum_age_hours", 1, {1, 24 * 365}); hours != 1) {
    from.refuse("minimum_age_hours", "1, or no such setting", std::to_string(hours),
                "write `enforce: { minimum_age: " + std::to_string(hours) + "h }` beside `provider: keycloak` instead");
  }
  from.finish();
}

bool read_apply(SettingsReader from) {
  const bool out = from.flag("turn_on_admin_events", false);
  from.finish();
  return out;
}

bool read_events(SettingsReader& from) {
  const std::string word = from.text("events", "required");
  if (word != "required" && word != "off") from.refuse("events", "required or off", "'" + word + "'");
  return word == "required";
}

std::vector<std::string> read_realms(SettingsReader& from) {
  auto out = from.text_or_texts("realms");
  if (out.size() > kMaxRealms) {
    from.refuse("realms", "a maximum of " + std::to_string(kMaxRealms), std::to_string(out.size()),
                "split them over several backends");
  }
  return out;
}

}  // namespace

Settings parse_settings(std::string_view text) {
  const auto json = common::parse_settings_json(text);
  SettingsReader from(json);
  Settings out;
  out.url = read_url(from);
  out.realms = read_realms(from);
  if (!from.has("auth"))
    from.refuse("auth", "the account that reads", "nothing", "add auth with client_id and client_secret");
  out.login = read_login(from.object("auth"));
  if (from.has("tls")) out.tls = read_tls(from.object("tls"));
  read_detection(from.object("drift_detection"), out);
  out.turn_on_admin_events = read_apply(from.object("apply"));
  out.use_events = read_events(from);
  out.owner_attribute = from.text("owner_attribute", out.owner_attribute);
  out.poll_interval = from.ms("poll_interval_ms", out.poll_interval, kMaxPoll);
  out.sweep_interval = from.seconds("sweep_interval_s", out.sweep_interval, kMaxSweep);
  out.event_overlap = from.seconds("event_overlap_s", out.event_overlap, kMaxOverlap);
  out.page = from.number("page", out.page, {2, kMaxPage});
  out.connect = from.ms("connect_timeout_ms", out.connect, kMaxConnect);
  out.call = from.ms("call_timeout_ms", out.call, kMaxCall);
  out.scope = common::read_scope(from);
  from.finish();
  return out;
}

std::string cursor_scope(const Settings& settings) {
  std::string out = settings.url + "\n" + settings.scope.text() + (settings.use_events ? "\nevents" : "\noff");
  for (const auto& realm : settings.realms) out += "\n" + realm;
  return out;
}

}  // namespace driftd::keycloak
