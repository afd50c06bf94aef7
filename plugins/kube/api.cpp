// SPDX-License-Identifier: Apache-2.0
#include "kube/api.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/short_text.hpp"
#include "kube/json_access.hpp"

namespace driftd::kube {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kTokenAge{60};  // a projected token is replaced long before it expires
constexpr std::size_t kMaxToken = 64u << 10;
constexpr std::size_t kMaxMessage = 300;

std::string member(const std::string& body, const char* name) {
  const json status = json::parse(body, nullptr, false);
  if (!status.is_object() || text(status, {"kind"}) != "Status") return {};
  return text(status, {name});
}

http::Response too_soon(std::chrono::milliseconds left, std::int64_t now_ns) {
  http::Response out;
  out.status = 429;
  out.sent_ns = now_ns;
  out.retry_after_ms = left.count();
  out.body =
      R"({"kind":"Status","message":"no request was sent: the Retry-After time of the API server has not passed yet"})";
  return out;
}

}  // namespace

http::Options Api::options(sdk::Call& call) {
  http::Options out = bare_options(call);
  if (connection_.guards_cluster) out.on_connection = [this](sdk::Call& of) { check_cluster(of); };
  return out;
}

http::Options Api::bare_options(sdk::Call& call) {
  http::Options out;
  out.tls = tls(call);
  out.connect = connection_.connect;
  out.http2 = true;
  out.user_agent = connection_.user_agent;
  return out;
}

http::Tls Api::tls(sdk::Call& call) {
  http::Tls out = connection_.tls;
  if (connection_.identification.token_reference.empty()) return out;
  const Credential who = credential(call);
  if (who.certificate_pem.empty()) return out;
  out.certificate_pem = who.certificate_pem;
  out.key_pem = who.key_pem;
  out.certificate_file.clear();
  out.key_file.clear();
  return out;
}

/// Checks the cluster uid over a separate, later connection. If the endpoint had moved before the original connection
/// was made, this one shows it.
void Api::check_cluster(sdk::Call& call) {
  http::Client client(bare_options(call));
  const http::Response response = send_request(call, *this, client, kSystemPath);
  if (response.status == 403 || response.status == 404)
    return cluster_guard_.check_connection({});  // no right to read the cluster's identity
  if (!response.ok()) throw refusal(response, std::string("GET ") + kSystemPath, {}, {});
  const json system = json::parse(response.body, nullptr, false);
  cluster_guard_.check_connection(text(system, {"metadata", "uid"}));
}

std::string Api::read_token_file() const {
  const std::string& path = connection_.identification.token_file;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, "the token file " + path + " cannot be read: " + std::strerror(errno));
  }
  std::string out(kMaxToken, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r' || out.back() == ' ')) out.pop_back();
  return out;
}

Credential Api::credential(sdk::Call& call) {
  const Identification& who = connection_.identification;
  Credential out;
  if (who.token_reference.empty()) {
    out.token = who.token_file.empty() ? who.token : token_of_file(call);
    return out;
  }
  std::string text = call.secret(who.token_reference);
  {
    const std::lock_guard lock(mutex_);
    note(call, text);
  }
  out = parse_credential(text);
  http::wipe(text);
  if (out.expires_ns && *out.expires_ns <= call.now_ns()) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, "settings.token: the ExecCredential expired at " + out.expires +
                                                   "; expected a newer one of its program");
  }
  return out;
}

/// Under the mutex.
void Api::note(sdk::Call& call, std::string_view credential) {
  const std::size_t hash = std::hash<std::string_view>{}(credential);
  if (hash != std::exchange(used_, hash)) changed_ns_ = call.now_ns();
}

/// Under the mutex.
void Api::read_token(sdk::Call& call) {
  std::string fresh = read_token_file();
  cached_.swap(fresh);
  http::wipe(fresh);
  read_at_ = Steady::now();
  note(call, cached_);
}

std::string Api::token_of_file(sdk::Call& call) {
  const std::lock_guard lock(mutex_);
  if (cached_.empty() || Steady::now() - read_at_ > kTokenAge) read_token(call);
  return cached_;
}

bool Api::reread_credential(sdk::Call& call, std::int64_t sent_ns) {
  const Identification& who = connection_.identification;
  if (!who.token_reference.empty()) {
    std::string text = call.secret(who.token_reference);
    const std::lock_guard lock(mutex_);
    note(call, text);
    http::wipe(text);
    return changed_ns_ > sent_ns;
  }
  if (who.token_file.empty()) return false;
  const std::lock_guard lock(mutex_);
  read_token(call);
  return changed_ns_ > sent_ns;
}

http::Request Api::get(sdk::Call& call, const std::string& path_and_query) {
  http::Request out;
  out.url = connection_.server + path_and_query;
  out.timeout = connection_.call;
  out.headers.push_back("Accept: application/json");
  const Credential who = credential(call);
  if (!who.token.empty()) out.headers.push_back("Authorization: Bearer " + who.token);
  return out;
}

std::string message_of(const std::string& body) { return common::short_text(member(body, "message"), kMaxMessage); }
std::string reason_of(const std::string& body) { return member(body, "reason"); }

sdk::Failure refusal(const http::Response& response, const std::string& what, const std::string& kind,
                     const std::string& right) {
  sdk::Failure out = http::failure_of(response, what, message_of(response.body));
  out.kind = kind;
  if (out.code == DRIFTD_DENIED) out.right = right;
  if (out.code == DRIFTD_NOT_FOUND) out.code = DRIFTD_UNSUPPORTED;
  return out;
}

http::Response send_request(sdk::Call& call, Api& api, http::Client& client, const std::string& path_and_query,
                            const std::function<void(http::Request&)>& shape) {
  const std::string path = path_and_query.substr(0, path_and_query.find('?'));
  if (const auto left = api.retry_after().left(path); left.count() > 0) return too_soon(left, call.now_ns());
  const auto once = [&] {
    http::Request request = api.get(call, path_and_query);
    if (shape) shape(request);
    return client.send(call, request);
  };
  http::Response response = once();
  if (response.status == 401 && api.reread_credential(call, response.sent_ns)) response = once();
  api.retry_after().note(path, response);
  return response;
}

}  // namespace driftd::kube
