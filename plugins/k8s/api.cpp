// SPDX-License-Identifier: Apache-2.0
#include "k8s/api.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace driftd::k8s {
namespace {

using nlohmann::json;
using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kTokenAge{60};  // a projected token is replaced long before it expires
constexpr std::size_t kMostToken = 64u << 10;
constexpr std::size_t kMostMessage = 300;

std::string member(const std::string& body, const char* name) {
  const json status = json::parse(body, nullptr, false);
  if (!status.is_object() || status.value("kind", "") != "Status") return {};
  const auto found = status.find(name);
  return found != status.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

http::Options Api::options() const {
  http::Options out;
  out.tls = settings_.tls;
  out.connect = settings_.connect;
  out.http2 = true;
  out.user_agent = "driftd-k8s/0.1";
  return out;
}

std::string Api::read_token_file() const {
  const std::string& path = settings_.identification.token_file;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, "the token file " + path + " cannot be read: " + std::strerror(errno));
  }
  std::string out(kMostToken, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r' || out.back() == ' ')) out.pop_back();
  return out;
}

std::string Api::token(sdk::Call& call) {
  const Identification& who = settings_.identification;
  if (!who.token_reference.empty()) return call.secret(who.token_reference);
  if (who.token_file.empty()) return who.token;
  const std::lock_guard lock(mutex_);
  const auto now = Steady::now();
  if (cached_.empty() || now - read_at_ > kTokenAge) {
    cached_ = read_token_file();
    read_at_ = now;
  }
  return cached_;
}

bool Api::refused(sdk::Call&) {
  if (settings_.identification.token_file.empty()) return false;
  const std::lock_guard lock(mutex_);
  std::string fresh = read_token_file();
  const bool other = fresh != cached_;
  cached_.swap(fresh);
  read_at_ = Steady::now();
  http::wipe(fresh);
  return other;
}

http::Request Api::get(sdk::Call& call, const std::string& path_and_query) {
  http::Request out;
  out.url = settings_.server + path_and_query;
  out.timeout = settings_.call;
  out.headers.push_back("Accept: application/json");
  std::string bearer = token(call);
  if (!bearer.empty()) out.headers.push_back("Authorization: Bearer " + bearer);
  http::wipe(bearer);
  return out;
}

std::string message_of(const std::string& body) { return member(body, "message").substr(0, kMostMessage); }
std::string reason_of(const std::string& body) { return member(body, "reason"); }

sdk::Failure refusal(const http::Response& response, const std::string& what, const std::string& kind,
                     const std::string& right) {
  sdk::Failure out = http::failure_of(response, what, message_of(response.body));
  out.kind = kind;
  if (out.code == DRIFTD_DENIED) out.right = right;
  if (out.code == DRIFTD_NOT_FOUND) out.code = DRIFTD_UNSUPPORTED;
  return out;
}

http::Response ask(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query) {
  http::Response response = client.send(call, api.get(call, path_and_query));
  if (response.status == 401 && api.refused(call)) response = client.send(call, api.get(call, path_and_query));
  return response;
}

json ask_json(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query, const std::string& kind,
              const std::string& right) {
  const http::Response response = ask(call, api, client, path_and_query);
  const std::string what = "GET " + path_and_query.substr(0, path_and_query.find('?'));
  if (!response.ok()) throw refusal(response, what, kind, right);
  json out = json::parse(response.body, nullptr, false);
  if (!out.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, what + ": the answer is no JSON object", kind);
  return out;
}

}  // namespace driftd::k8s
