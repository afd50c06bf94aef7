// SPDX-License-Identifier: Apache-2.0
// Terraform's kubernetes backend: the gzipped state in a Secret `tfstate-<workspace>-<suffix>`, a long one in further
// Secrets `…-part-<n>`; found by their labels, for their names alone are ambiguous (hashicorp/terraform#33995).
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "common/settings_reader.hpp"
#include "common/shown_url.hpp"
#include "common/wait_until.hpp"
#include "terraform/http_pool.hpp"
#include "terraform/state.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

constexpr const char* kMetadataOnly = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
constexpr const char* kMetadataOf = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// One Secret of the state.
struct Part {
  std::size_t index = 0;
  std::string version;
  const json* object = nullptr;
};

class KubernetesSource final : public Source {
 public:
  KubernetesSource(const Settings& settings, common::SettingsReader& from)
      : namespace_(from.text("namespace", "default")),
        name_("tfstate-" + settings.workspace + "-" +
              from.required_text("secret_suffix", "the suffix of the Secret's name")),
        base_(base_url("host", from.text("host", "https://kubernetes.default.svc"))),
        token_(from.text("token")),
        token_file_(from.text("token_file")),
        http_(settings, tls_of(from)) {
    selector_ =
        "tfstate=true,tfstateSecretSuffix=" + from.text("secret_suffix") + ",tfstateWorkspace=" + settings.workspace;
    for (const auto& [key, value] : from.text_map("labels")) selector_ += "," + key + "=" + value;
    url_ =
        base_ + "/api/v1/namespaces/" + http::escape(namespace_) + "/secrets?labelSelector=" + http::escape(selector_);
  }

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    Fetched out;
    if (!known.empty()) {
      const json list = ask(call, {kMetadataOnly}, out.sent_ns);
      out.unchanged = stamp_of(parts_of(list)) == known;
      if (out.unchanged) return out;
    }
    json list = ask(call, {}, out.sent_ns);
    const auto parts = parts_of(list);
    out.stamp = stamp_of(parts);
    Gunzip gunzip(out.state);
    for (const auto& part : parts) {
      const json data = part.object->value("data", json::object());
      std::string bytes = from_base64(text_of(data, "tfstate"), name());
      gunzip.write(bytes);
      explicit_bzero(bytes.data(), bytes.size());
    }
    gunzip.finish();
    out.state.finish();
    return out;
  }

  /// The first Secret by name holds the first part of the state.
  Probe probe(sdk::Call& call) override {
    http::Response answer = http_.probe(call, url_ + "&limit=1", credentials(call, {}));
    check(answer);
    Probe out{first_part(answer.body)};
    http::wipe(answer.body);
    return out;
  }

  void watch(sdk::Call& call, const std::function<void()>& changed) override {
    while (!call.cancelled()) {
      const auto began = std::chrono::steady_clock::now();
      std::int64_t sent = 0;
      const json list = ask(call, {kMetadataOnly}, sent, false);
      changed();  // for changes between the last refresh and now
      http::Request request;
      request.url = url_ + "&watch=true&timeoutSeconds=290&resourceVersion=" +
                    http::escape(text_of(list.value("metadata", json::object()), "resourceVersion"));
      request.headers = credentials(call, {kMetadataOf});
      request.timeout = std::chrono::milliseconds(0);
      request.idle = std::chrono::seconds(310);
      request.max_body = 0;
      request.on_body = [&changed](std::string_view piece) {
        if (!piece.empty()) changed();  // an event, or a part of one
      };
      const http::Response answer = http_.send(call, request);
      if (answer.status != 410) check(answer);
      common::wait_until(call, began + kWatchRound);
    }
  }

 private:
  static http::Tls tls_of(common::SettingsReader& from) {
    http::Tls out;
    out.ca_pem = from.text("cluster_ca_certificate");
    out.ca_file = from.text("cluster_ca_certificate_file");
    out.certificate_file = from.text("client_certificate_file");
    out.key_file = from.text("client_key_file");
    out.server_name = from.text("tls_server_name");
    out.verify = !from.flag("insecure", false);
    return out;
  }
  std::string name() const { return "secret " + namespace_ + "/" + name_; }

  /// Returns what a list of Secrets, which may be truncated, holds of the gzipped state in its first Secret.
  static std::string first_part(const std::string& list) {
    constexpr std::string_view kBegins = "\"tfstate\":\"H4sI";  // base64 of gzip's magic; a label has this name, too
    const auto found = list.find(kBegins);
    if (found == std::string::npos) return {};
    const auto begin = found + kBegins.size() - 4;
    std::string text = list.substr(begin, list.find('"', begin) - begin);
    text.resize(text.size() / 4 * 4);
    return beginning_of(from_base64(text, "tfstate"));
  }

  std::vector<std::string> credentials(sdk::Call& call, std::vector<std::string> headers) const {
    std::string token = call.secret(token_);
    if (!token_file_.empty()) {  // projected tokens rotate: read again each time
      std::ifstream file(token_file_);
      token.assign(std::istreambuf_iterator<char>(file), {});
      if (token.empty())
        throw sdk::Failure(DRIFTD_DENIED, token_file_ + ": no token can be read", {}, "read access to " + token_file_);
      token.erase(token.find_last_not_of(" \r\n") + 1);
    }
    if (!token.empty()) headers.push_back("Authorization: Bearer " + token);
    http::wipe(token);
    return headers;
  }

  json ask(sdk::Call& call, std::vector<std::string> headers, std::int64_t& sent_ns, bool must_hold_state = true) {
    http::Response answer = http_.get(call, url_, credentials(call, std::move(headers)));
    check(answer);
    sent_ns = answer.sent_ns;
    json out = common::parse_bounded(answer.body).value;
    http::wipe(answer.body);
    if (!out.is_object() || !out.contains("items") || !out["items"].is_array()) {
      throw sdk::Failure(DRIFTD_CORRUPT, "GET " + common::shown_url(base_) + ": the answer is not a list of Secrets");
    }
    if (must_hold_state && out["items"].empty()) no_state(name());
    return out;
  }
  void check(const http::Response& answer) const {
    if (answer.status == 200) return;
    refuse(answer, {"GET " + common::shown_url(base_) + "/api/v1/namespaces/" + namespace_ + "/secrets",
                    "get, list, watch on secrets in namespace " + namespace_, "the token or client certificate"});
  }

  /// Returns the Secrets of this state in their order; if one is missing the rest is useless.
  std::vector<Part> parts_of(const json& list) const {
    std::vector<Part> out;
    for (const auto& item : list["items"]) {
      const json metadata = item.value("metadata", json::object());
      const std::string name = text_of(metadata, "name");
      Part part{0, text_of(metadata, "uid") + "@" + text_of(metadata, "resourceVersion"), &item};
      if (name != name_) {
        const std::string prefix = name_ + "-part-", number = name.substr(std::min(name.size(), prefix.size()));
        if (name.rfind(prefix, 0) != 0 || number.empty() || number.size() > 6 ||
            number.find_first_not_of("0123456789") != std::string::npos)
          continue;
        part.index = static_cast<std::size_t>(std::stoul(number));
      }
      out.push_back(std::move(part));
    }
    std::sort(out.begin(), out.end(), [](const Part& a, const Part& b) { return a.index < b.index; });
    if (out.empty()) no_state(name());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].index == i) continue;
      throw sdk::Failure(DRIFTD_UNAVAILABLE,
                         name() + ": part " + std::to_string(i) + " is not there; it is read again in the next cycle");
    }
    return out;
  }
  static std::string stamp_of(const std::vector<Part>& parts) {
    std::string out;
    for (const auto& part : parts) out += (out.empty() ? "" : " ") + part.version;
    return out;
  }

  const std::string namespace_, name_, base_, token_, token_file_;
  std::string selector_, url_;
  HttpPool http_;
};

}  // namespace

std::unique_ptr<Source> open_kubernetes(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  auto out = std::make_unique<KubernetesSource>(settings, from);
  from.finish();
  return out;
}

}  // namespace driftd::terraform
