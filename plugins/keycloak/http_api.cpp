// SPDX-License-Identifier: Apache-2.0
#include "keycloak/http_api.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "common/bounded_json.hpp"
#include "keycloak/apply_rules.hpp"
#include "keycloak/mapping.hpp"

namespace driftd::keycloak {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxAnswer = 64u << 20;
constexpr std::size_t kInFlight = 4;  // requests at once of one listing: the server must stay usable for others

std::string form(const std::string& name, const std::string& value) { return name + "=" + http::escape(value); }

/// How long before its end a token is no longer used: requests and clocks take their time.
seconds reserve(seconds lifetime) { return std::min(seconds(10), lifetime / 4); }

}  // namespace

HttpApi::HttpApi(const Settings& settings)
    : settings_(settings),
      options_{settings.tls, settings.connect, false, "driftd-keycloak"} {}

HttpApi::Client HttpApi::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<http::MultiClient>(options_);
  Client out = std::move(idle_.back());
  idle_.pop_back();
  return out;
}

void HttpApi::park(Client client) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(client));
}

http::Response HttpApi::send(sdk::Call& call, http::Request request) {
  const std::string what = http::name_of(request);
  Client client = take();
  client->start(call, std::move(request));
  while (true) {
    auto ended = client->run(call, Steady::time_point::max());
    if (ended.empty()) continue;
    if (ended.front().failure) throw *ended.front().failure;  // its connections are not used again
    park(std::move(client));
    return std::move(ended.front().response);
  }
}

AccessToken HttpApi::login(sdk::Call& call) {
  const Login& login = settings_.login;
  http::Request request;
  request.url = settings_.url + "/realms/" + http::escape(login.realm) + "/protocol/openid-connect/token";
  request.method = "POST";
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.timeout = settings_.call;
  std::string secret = call.secret(login.client_secret_token), password = call.secret(login.password_token);
  request.body = form("client_id", login.client_id);
  if (!secret.empty()) request.body += "&" + form("client_secret", secret);
  request.body += login.username.empty()
                      ? "&grant_type=client_credentials"
                      : "&grant_type=password&" + form("username", login.username) + "&" + form("password", password);
  http::wipe(secret);
  http::wipe(password);
  const std::string what = http::name_of(request);
  const auto begun = Steady::now();
  http::Response response = send(call, std::move(request));
  if (response.status == 400 || response.status == 401) {
    throw sdk::Failure(
        DRIFTD_UNAUTHENTICATED,
        what + ": HTTP status " + std::to_string(response.status) + ": Keycloak refused the login of " +
            (login.username.empty() ? "the service account of client " + login.client_id : "user " + login.username) +
            " in realm " + login.realm +
            "; check settings.auth, and for a client that `serviceAccountsEnabled` is true");
  }
  if (response.status == 404)
    throw sdk::Failure(DRIFTD_INVALID,
                       what + ": HTTP status 404: no such realm; check settings.url and settings.auth.realm");
  if (!response.ok()) throw http::failure_of(response, what);
  auto token = parse_token(response.body);
  http::wipe(response.body);
  if (!token) throw sdk::Failure(DRIFTD_CORRUPT, what + ": the answer holds no access token");
  token_made_ = begun;  // what the token says of the server's clock is true at this moment or a little later
  return *token;
}

std::string HttpApi::bearer(sdk::Call& call, const std::string& refused) {
  const std::lock_guard lock(token_mutex_);
  const auto age = Steady::now() - token_made_;
  const bool fresh = !token_.bearer.empty() && age < token_.lifetime - reserve(token_.lifetime);
  if (fresh && token_.bearer != refused) return token_.bearer;
  token_ = login(call);
  return token_.bearer;
}

std::int64_t HttpApi::server_ms(sdk::Call& call) {
  bearer(call);
  const std::lock_guard lock(token_mutex_);
  if (token_.issued_ms == 0) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED,
                       "the access token does not say when it was issued, so the server's clock is not known; set "
                       "settings.events to off");
  }
  return token_.issued_ms + std::chrono::duration_cast<milliseconds>(Steady::now() - token_made_).count();
}

http::Request HttpApi::admin_request(const std::string& path, const std::string& bearer) const {
  http::Request out;
  out.url = settings_.url + "/admin/realms" + path;
  out.headers = {"Authorization: Bearer " + bearer, "Accept: application/json"};
  out.timeout = settings_.call;
  out.max_body = kMaxAnswer;
  return out;
}

Answer HttpApi::answer_of(http::Response response, const std::string& what) const {
  if (response.status == 401) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, what +
                                                   ": HTTP status 401: Keycloak refused a token that it has just "
                                                   "made; check that settings.url leads to one server only");
  }
  if (response.status == 429 || response.status >= 500) throw http::failure_of(response, what);
  Answer out{response.status, nullptr, response.sent_ns};
  if (!response.ok()) return out;
  auto parsed = common::parse_bounded(response.body);
  http::wipe(response.body);
  if (parsed.cut)
    throw sdk::Failure(DRIFTD_BUDGET, what + ": " + parsed.why + "; set settings.page to a smaller number");
  if (parsed.value.is_discarded()) {
    throw sdk::Failure(DRIFTD_CORRUPT, what + ": the answer is not JSON; check that settings.url leads to Keycloak");
  }
  out.body = std::move(parsed.value);
  return out;
}

Answer HttpApi::written(http::Response response, const std::string& what) const {
  if (response.status == 401) return answer_of(std::move(response), what);  // throws
  Answer out{response.status, nullptr, response.sent_ns};
  if (auto parsed = common::parse_bounded(response.body); !parsed.cut && !parsed.value.is_discarded())
    out.body = std::move(parsed.value);
  // With an errorMessage Keycloak has decided and rolled back; any other 5xx may be a server that is about to stop.
  const bool undecided = out.status >= 500 && text_of(out.body, "errorMessage").empty();
  if (!undecided && out.status != 429) return out;
  const std::string message = message_of(out.body);
  throw sdk::Failure(DRIFTD_UNAVAILABLE,
                     what + ": HTTP status " + std::to_string(out.status) + (message.empty() ? "" : ": " + message));
}

Answer HttpApi::change(sdk::Call& call, const WriteRequest& write) {
  std::string token = bearer(call);
  for (int attempt = 0;; ++attempt) {
    http::Request request = admin_request(write.path, token);
    request.method = write.method;
    if (!write.body.is_null()) {
      request.headers.emplace_back("Content-Type: application/json");
      request.body = write.body.dump();
    }
    const std::string what = http::name_of(request);
    call.permit("requests");
    http::Response response = send(call, std::move(request));
    if (response.status != 401 || attempt > 0) return written(std::move(response), what);
    token = bearer(call, token);  // a refused token changed nothing
  }
}

Answer HttpApi::get(sdk::Call& call, const std::string& path) {
  std::vector<Answer> out = get_all(call, {path});
  return std::move(out.front());
}

std::vector<Answer> HttpApi::get_all(sdk::Call& call, const std::vector<std::string>& paths) {
  std::vector<Answer> out(paths.size());
  std::map<std::uint64_t, std::size_t> running;  // request → index of its path
  std::vector<char> again(paths.size(), 0);      // 1: with another token
  std::string token = bearer(call);
  Client client = take();
  std::size_t next = 0;
  const auto start = [&](std::size_t index) {
    call.permit("requests");
    running[client->start(call, admin_request(paths[index], token))] = index;
  };
  while (next < paths.size() || !running.empty()) {
    while (next < paths.size() && running.size() < kInFlight) start(next++);
    for (auto& ended : client->run(call, Steady::time_point::max())) {
      if (ended.failure) throw *ended.failure;
      const std::size_t index = running.at(ended.id);
      running.erase(ended.id);
      if (ended.response.status == 401 && std::exchange(again[index], 1) == 0) {
        token = bearer(call, token);  // it ended or was revoked while the list was read
        start(index);
        continue;
      }
      const http::Request request = admin_request(paths[index], {});
      out[index] = answer_of(std::move(ended.response), http::name_of(request));
    }
  }
  park(std::move(client));
  return out;
}

int HttpApi::probe(sdk::Call& call, milliseconds max_time) const {
  http::Options options = options_;
  options.connect = std::min(options.connect, max_time);
  http::Client client(options);
  http::Request request;
  request.url = settings_.url + "/realms/" + http::escape(settings_.login.realm);
  request.timeout = max_time;
  return client.send(call, request).status;
}

}  // namespace driftd::keycloak
