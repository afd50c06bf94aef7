// SPDX-License-Identifier: Apache-2.0
#include "support/keycloak.hpp"

#include <curl/curl.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr const char* kAgent = "driftd-test";

/// Returns the folder of Keycloak and its database. The setup test has made it.
const std::string& home() {
  static const std::string kHome = [] {
    const Output out = run({std::string(DRIFTD_SOURCE_DIR) + "/tests/servers/keycloak/fetch.sh", "26.3.0"}, {},
                           std::chrono::minutes(10));
    if (out.code != 0) throw std::runtime_error("fetch.sh:\n" + out.err);
    return out.out.substr(0, out.out.find('\n'));
  }();
  return kHome;
}

struct HttpAnswer {
  long status = 0;
  std::string body;
};

std::size_t append(char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

HttpAnswer send(const std::string& method, const std::string& url, std::vector<std::string> headers,
                const std::string& body) {
  static const CURLcode kOnce = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)kOnce;
  HttpAnswer out;
  CURL* curl = curl_easy_init();
  curl_slist* list = nullptr;
  for (const auto& header : headers) list = curl_slist_append(list, header.c_str());
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, kAgent);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
  if (!body.empty()) curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &out.body);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out.status);
  curl_slist_free_all(list);
  curl_easy_cleanup(curl);
  if (code != CURLE_OK) out.status = 0;
  return out;
}

}  // namespace

KeycloakServer::KeycloakServer() {
  std::filesystem::copy_file(home() + "/database/keycloak.mv.db", dir_.file("keycloak.mv.db"));
  port_ = free_port();
  management_port_ = free_port();
  start();
}

KeycloakServer::~KeycloakServer() { child_.kill(); }

void KeycloakServer::start() {
  const std::string kc = home() + "/dist/bin/kc.sh";
  child_ = Child({kc, "start", "--optimized", "--http-enabled=true", "--hostname-strict=false", "--http-host=127.0.0.1",
                  "--http-port=" + std::to_string(port_), "--http-management-port=" + std::to_string(management_port_),
                  "--db-url=jdbc:h2:file:" + dir_.file("keycloak") + ";NON_KEYWORDS=VALUE"},
                 {dir_.file("server.log"),
                  {{"JAVA_OPTS",
                    "-Xms64m -Xmx512m -XX:MaxMetaspaceSize=256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
                    "-Djava.security.egd=file:/dev/urandom"},
                   {"LD_PRELOAD", ""},  // a test may move its own clock; the server keeps the real one
                   {"QUARKUS_HTTP_ACCESS_LOG_ENABLED", "true"},
                   {"QUARKUS_HTTP_ACCESS_LOG_PATTERN", "ACCESS %{i,User-Agent} %r %s"}},
                  {}});
  const bool up = eventually(
      [&] { return !child_.running() || send("GET", url() + "/realms/master", {}, {}).status == 200; }, seconds(120));
  if (!up || !child_.running()) throw std::runtime_error("Keycloak did not start:\n" + log());
}

void KeycloakServer::stop() {
  child_.signal(SIGTERM);
  child_.wait(seconds(60));
}

std::string KeycloakServer::token() {
  const auto now = std::chrono::steady_clock::now();
  if (!token_.empty() && now - token_made_ < seconds(30)) return token_;
  const auto answer = send("POST", url() + "/realms/master/protocol/openid-connect/token", {},
                           "grant_type=password&client_id=admin-cli&username=admin&password=admin");
  if (answer.status != 200) throw std::runtime_error("no token: " + answer.body);
  token_made_ = now;
  return token_ = json::parse(answer.body).at("access_token").get<std::string>();
}

json KeycloakServer::admin(const std::string& method, const std::string& path, const json& body) {
  const auto answer =
      send(method, url() + "/admin/realms" + path,
           {"Authorization: Bearer " + token(), "Content-Type: application/json"}, body.is_null() ? "" : body.dump());
  if (answer.status < 200 || answer.status >= 300)
    throw std::runtime_error(method + " " + path + ": " + std::to_string(answer.status) + " " + answer.body);
  return answer.body.empty() ? json() : json::parse(answer.body);
}

void KeycloakServer::make_realm(const std::string& realm) {
  admin("POST", "", {{"realm", realm}, {"enabled", true}, {"adminEventsEnabled", true}});
}

std::string KeycloakServer::client_uuid(const std::string& realm, const std::string& client_id) {
  return get("/" + realm + "/clients?clientId=" + client_id).at(0).at("id").get<std::string>();
}

void KeycloakServer::make_account(const std::string& realm, const std::string& secret,
                                  const std::vector<std::string>& roles) {
  admin("POST", "/" + realm + "/clients",
        {{"clientId", "driftd"},
         {"secret", secret},
         {"serviceAccountsEnabled", true},
         {"standardFlowEnabled", false},
         {"publicClient", false}});
  set_roles(realm, roles);
}

void KeycloakServer::set_roles(const std::string& realm, const std::vector<std::string>& roles) {
  const std::string management = client_uuid(realm, "realm-management");
  const json user = get("/" + realm + "/clients/" + client_uuid(realm, "driftd") + "/service-account-user");
  const std::string mappings =
      "/" + realm + "/users/" + user.at("id").get<std::string>() + "/role-mappings/clients/" + management;
  const json now = get(mappings);
  if (!now.empty()) admin("DELETE", mappings, now);
  json wanted = json::array();
  for (const auto& role : get("/" + realm + "/clients/" + management + "/roles")) {
    if (std::find(roles.begin(), roles.end(), role.at("name")) != roles.end()) wanted.push_back(role);
  }
  if (!wanted.empty()) admin("POST", mappings, wanted);
}

void KeycloakServer::set_events(const std::string& realm, bool enabled) {
  json config = get("/" + realm + "/events/config");
  config["adminEventsEnabled"] = enabled;
  admin("PUT", "/" + realm + "/events/config", config);
}

void KeycloakServer::sql(const std::string& statements) {
  std::string jar;
  for (const auto& each : std::filesystem::directory_iterator(home() + "/dist/lib/lib/main")) {
    if (each.path().filename().string().starts_with("com.h2database.h2-")) jar = each.path();
  }
  const Output out = run({"java", "-cp", jar, "org.h2.tools.Shell", "-url",
                          "jdbc:h2:file:" + dir_.file("keycloak") + ";NON_KEYWORDS=VALUE;IFEXISTS=TRUE", "-user", "",
                          "-password", "", "-sql", statements},
                         {}, seconds(120));
  if (out.code != 0 || out.err.find("Exception") != std::string::npos)
    throw std::runtime_error(statements + "\n" + out.out + out.err);
}

void KeycloakServer::kcadm(const std::vector<std::string>& commands) {
  const std::string program = "'" + home() + "/dist/bin/", config = " --config '" + dir_.file("kcadm.config") + "'";
  std::string script = "set -e\n" + program + "kcadm.sh' config credentials --server " + url() +
                       " --realm master --user admin --password admin" + config + "\n";
  for (const auto& command : commands) script += program + "kcadm.sh'" + command.substr(8) + config + "\n";
  const Output out = run({"sh", "-c", script}, {}, seconds(120));
  if (out.code != 0) throw std::runtime_error(script + out.out + out.err);
}

std::vector<std::string> KeycloakServer::requests() const {
  std::vector<std::string> out;
  std::istringstream lines(log());
  for (std::string line; std::getline(lines, line);) {
    const auto access = line.find("ACCESS driftd-keycloak ");
    if (access == std::string::npos) continue;
    const std::string request = line.substr(access + 23);
    if (request.find(" /admin/") != std::string::npos) out.push_back(request.substr(0, request.find(" HTTP/")));
  }
  return out;
}

}  // namespace driftd::test
