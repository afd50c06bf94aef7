// SPDX-License-Identifier: Apache-2.0
#include <curl/curl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {
namespace {

constexpr std::size_t kMaxBody = 4 << 20;  ///< a Secret is up to 1 MiB; base64 and managed fields come on top
constexpr std::size_t kMaxToken = 64 << 10;

struct FreeCurl {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, FreeCurl>;
using Headers = std::unique_ptr<curl_slist, FreeCurl>;

std::size_t collect(char* data, std::size_t, std::size_t size, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size > kMaxBody) return 0;  // ends the transfer
  body.append(data, size);
  return size;
}

/// Empty if the text is not base64.
std::optional<std::string> decode_base64(const std::string& text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

class KubeResolver final : public CredentialResolver {
 public:
  explicit KubeResolver(KubeAccess access) : access_(std::move(access)) {}

  Result<std::vector<Secret>> resolve(const std::vector<CredentialReference>& references,
                                      std::chrono::milliseconds max_time) override {
    const auto end = std::chrono::steady_clock::now() + max_time;
    std::map<std::pair<std::string, std::string>, nlohmann::json> secrets;  // one read each: its values belong together
    std::vector<Secret> out;
    for (const auto& reference : references) {
      const auto [at, fresh] = secrets.try_emplace({reference.space, reference.name});
      if (fresh) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        if (left.count() <= 0) return fail(Code::deadline, render(reference) + ": the time was over");
        auto object = fetch(reference, left);
        if (!object) return fail(object.error().code, render(reference) + ": " + object.error().message);
        at->second = std::move(*object);
      }
      auto value = value_in(at->second, reference);
      if (!value) return tl::unexpected<Error>(value.error());
      out.push_back(std::move(*value));
    }
    return out;
  }

 private:
  static Result<Secret> value_in(const nlohmann::json& secret, const CredentialReference& reference) {
    const auto data = secret.find("data");
    const bool there = data != secret.end() && data->is_object() && data->contains(reference.key);
    if (!there) {
      return fail(Code::not_found, render(reference) + ": the Secret has no such key; it has " +
                                       std::to_string(data != secret.end() && data->is_object() ? data->size() : 0));
    }
    const nlohmann::json& text = (*data)[reference.key];
    auto value = text.is_string() ? decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
    if (!value) return fail(Code::invalid, render(reference) + ": the API server's answer is not base64");
    if (value->empty()) return fail(Code::invalid, render(reference) + ": the value is empty");
    return Secret(std::move(*value));
  }

  Result<std::string> server() const {
    if (!access_.server.empty()) {
      if (access_.server.starts_with("https://")) return access_.server;
      return fail(Code::invalid, "the API server's address must begin with https://");
    }
    const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
    const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
    if (host == nullptr || port == nullptr) {
      return fail(Code::unavailable,
                  "KUBERNETES_SERVICE_HOST is not set: this is no pod; use a `file:` or `env:` reference");
    }
    const std::string name(host);
    return "https://" + (name.find(':') == name.npos ? name : "[" + name + "]") + ":" + port;
  }

  Result<Secret> token() const {
    std::ifstream file(access_.token_file, std::ios::binary);
    std::string text(kMaxToken + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    if (text.empty()) {
      return fail(Code::denied, "the service account's token is not in " + access_.token_file +
                                    "; does the pod set automountServiceAccountToken: false?");
    }
    // A line break in it would add a header to the request.
    for (const char c : text) {
      if (c <= ' ' || c == 0x7f) return fail(Code::invalid, access_.token_file + " does not hold a token");
    }
    return Secret(std::move(text));
  }

  Result<nlohmann::json> fetch(const CredentialReference& reference, std::chrono::milliseconds max_time) const {
    static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
    const Handle handle(global == CURLE_OK ? curl_easy_init() : nullptr);
    if (!handle) return fail(Code::internal, "libcurl cannot be initialised");
    const auto base = server();
    if (!base) return tl::unexpected<Error>(base.error());
    const auto bearer = token();
    if (!bearer) return tl::unexpected<Error>(bearer.error());
    const Secret authorization("Authorization: Bearer " + bearer->reveal());
    Headers headers(curl_slist_append(nullptr, authorization.reveal().c_str()));
    headers.reset(curl_slist_append(headers.release(), "Accept: application/json"));
    // The parts are DNS names by the grammar, so nothing of them needs to be escaped.
    const std::string url = *base + "/api/v1/namespaces/" + reference.space + "/secrets/" + reference.name;
    std::string body;
    char why[CURL_ERROR_SIZE] = "";
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_CAINFO, access_.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(max_time.count()));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    const CURLcode done = curl_easy_perform(curl);
    if (done != CURLE_OK) return failed(done, why, *base);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) return refused(status, *base, reference);
    auto object = nlohmann::json::parse(body, nullptr, false);
    OPENSSL_cleanse(body.data(), body.size());
    if (!object.is_object()) return fail(Code::unavailable, *base + " did not answer with a JSON object");
    return object;
  }

  tl::unexpected<Error> failed(CURLcode code, const char* why, const std::string& base) const {
    const std::string text = base + ": " + (*why != '\0' ? why : curl_easy_strerror(code));
    if (code == CURLE_OPERATION_TIMEDOUT) return fail(Code::deadline, text);
    if (code == CURLE_WRITE_ERROR) return fail(Code::invalid, base + ": the answer is larger than 4 MiB");
    if (code == CURLE_PEER_FAILED_VERIFICATION)
      return fail(Code::denied, text + " (checked against " + access_.ca_file + ")");
    if (code == CURLE_SSL_CACERT_BADFILE) return fail(Code::invalid, text + " (" + access_.ca_file + ")");
    return fail(Code::unavailable, text);
  }

  /// The server's own text is not repeated: it is the server's choice what it contains.
  static tl::unexpected<Error> refused(long status, const std::string& base, const CredentialReference& reference) {
    const std::string answer = base + " answered " + std::to_string(status);
    if (status == 401) return fail(Code::denied, answer + ": it does not accept the service account's token");
    if (status == 403) {
      return fail(Code::denied, answer + ": the service account needs `get` on the Secret " + reference.name +
                                    " in the namespace " + reference.space + " (Role and RoleBinding)");
    }
    if (status == 404) return fail(Code::not_found, answer + ": there is no such Secret");
    return fail(Code::unavailable, answer);
  }

  KubeAccess access_;
};

}  // namespace

std::unique_ptr<CredentialResolver> kube_resolver(KubeAccess access) {
  return std::make_unique<KubeResolver>(std::move(access));
}

}  // namespace driftd::consumer
