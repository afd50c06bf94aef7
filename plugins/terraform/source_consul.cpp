// SPDX-License-Identifier: Apache-2.0
// Terraform's consul backend: one key, or a key that lists the keys of its chunks; each of them plain or gzipped.
#include <algorithm>
#include <chrono>
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
using std::chrono::seconds;

constexpr std::size_t kMaxChunks = 4096;

/// Writes a value to the spool; its first byte shows whether it is gzipped.
class MaybeGzip {
 public:
  explicit MaybeGzip(Spool& to) : to_(to) {}
  void write(std::string_view bytes) {
    if (bytes.empty()) return;
    if (!begun_ && bytes[0] == '\x1f') gunzip_ = std::make_unique<Gunzip>(to_);
    begun_ = true;
    gunzip_ ? gunzip_->write(bytes) : to_.write(bytes);
  }
  void finish() {
    if (gunzip_) gunzip_->finish();
    to_.finish();
  }

 private:
  Spool& to_;
  bool begun_ = false;
  std::unique_ptr<Gunzip> gunzip_;
};

/// Returns true for a key below that of the state, without a way out of it. Trailing slashes of the state's key do not
/// count, as Terraform writes its chunks.
bool is_below(const std::string& key, std::string path) {
  while (path.ends_with('/')) path.pop_back();
  if (!key.starts_with(path + "/")) return false;
  const std::string rest = key.substr(path.size()) + "/";
  return rest.find("/../") == std::string::npos && rest.find("/./") == std::string::npos;
}

class ConsulSource final : public Source {
 public:
  ConsulSource(const Settings& settings, common::SettingsReader& from)
      : path_(from.required_text("path", "the key of the state") +
              (settings.workspace == "default" ? "" : "-env:" + settings.workspace)),
        datacenter_(from.text("datacenter")),
        token_(from.text("access_token")),
        auth_(from.text("http_auth")),
        base_(base_url("address", from.text("scheme", "http") + "://" + from.text("address", "127.0.0.1:8500"))),
        http_(settings, tls_of(from)) {
    from.flag("gzip", false);  // known by the bytes
    from.flag("lock", true);
  }

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    const http::Response answer = get(call, path_);
    Fetched out;
    out.sent_ns = answer.sent_ns;
    out.stamp = hash_of(answer.body);
    out.unchanged = out.stamp == known;
    if (out.unchanged) return out;
    MaybeGzip to(out.state);
    const auto chunks = chunks_of(answer.body);
    if (chunks.empty()) to.write(answer.body);
    for (const auto& chunk : chunks) to.write(get(call, chunk).body);
    to.finish();
    if (out.state.size() == 0) no_state("consul: " + path_);
    return out;
  }

  Probe probe(sdk::Call& call) override {
    const ProbeDeadline end = probe_deadline();
    http::Response answer = http_.probe(call, url(path_), credentials(call), end);
    check(answer, path_);
    const auto chunks = chunks_of(answer.body);
    if (!chunks.empty()) answer = http_.probe(call, url(chunks.front()), credentials(call), end);
    return {beginning_of(answer.body)};
  }

  /// Sends a blocking query, which returns when the index of the key changes, after five minutes at the latest.
  void watch(sdk::Call& call, const std::function<void()>& changed) override {
    std::string index;
    while (!call.cancelled()) {
      const auto began = std::chrono::steady_clock::now();
      http::Request request;
      request.url = url(path_) + (index.empty() ? "" : "&wait=300s&index=" + index);
      request.headers = credentials(call);
      request.timeout = seconds(400);
      const http::Response answer = http_.send(call, request);
      if (answer.status != 404) check(answer, path_);
      const std::string now = index_of(answer);
      if (now != index) changed();
      if (now.empty()) {
        call.log(DRIFTD_LOG_WARN,
                 "consul: answers come without X-Consul-Index, or with 0: changes are seen by polling alone");
        common::wait_until(call, std::chrono::steady_clock::time_point::max());
        return;
      }
      index = now;
      common::wait_until(call, began + kWatchRound);
    }
  }

 private:
  /// Not the index: after the restore of a snapshot it goes back, and comes again with other values.
  static std::string hash_of(const std::string& value) {
    Spool bytes;
    bytes.write(value);
    bytes.finish();
    return "hash " + bytes.hash();
  }
  /// Index 0 is not valid (Consul's documentation of blocking queries).
  static std::string index_of(const http::Response& answer) {
    const std::string index = answer.header("x-consul-index");
    return index == "0" ? "" : index;
  }
  static http::Tls tls_of(common::SettingsReader& from) {
    http::Tls out;
    out.ca_file = from.text("ca_file");
    out.certificate_file = from.text("cert_file");
    out.key_file = from.text("key_file");
    return out;
  }

  std::string url(const std::string& key) const {
    std::string out = base_ + "/v1/kv/";
    for (std::size_t at = 0; at <= key.size();) {
      const auto slash = std::min(key.find('/', at), key.size());
      out += (at == 0 ? "" : "/") + http::escape(key.substr(at, slash - at));
      at = slash + 1;
    }
    return out + "?raw=true" + (datacenter_.empty() ? "" : "&dc=" + http::escape(datacenter_));
  }
  std::vector<std::string> credentials(sdk::Call& call) const {
    std::vector<std::string> out;
    if (!token_.empty()) out.push_back("X-Consul-Token: " + call.secret(token_));
    if (!auth_.empty()) out.push_back("Authorization: Basic " + base64(call.secret(auth_)));
    return out;
  }
  http::Response get(sdk::Call& call, const std::string& key) {
    http::Response out = http_.get(call, url(key), credentials(call));
    check(out, key);
    return out;
  }
  void check(const http::Response& answer, const std::string& key) const {
    const std::string what = "GET " + common::shown_url(base_) + "/v1/kv/" + key;
    if (answer.status == 404 && key == path_) no_state("consul: " + path_);
    if (answer.status == 404)
      throw sdk::Failure(DRIFTD_UNAVAILABLE,
                         what + ": a chunk of the state is not there; it is read again in the next cycle");
    if (answer.status == 403 && answer.body.find("ACL not found") != std::string::npos) {
      throw sdk::Failure(DRIFTD_UNAUTHENTICATED, what + ": the access token was refused");
    }
    if (answer.status != 200)
      refuse(answer, {what, "key_prefix \"" + path_ + "\" { policy = \"read\" }", "the access token or http_auth"});
  }
  /// Returns the chunk list of `{"current-hash": …, "chunks": […]}`; empty if the value is the state itself.
  std::vector<std::string> chunks_of(const std::string& value) const {
    if (value.size() > 512u << 10 || value.find("\"current-hash\"") == std::string::npos) return {};
    const json from = common::parse_bounded(value).value;
    if (!from.is_object() || !from.contains("current-hash") || !from.contains("chunks") || !from["chunks"].is_array())
      return {};
    std::vector<std::string> out;
    for (const auto& chunk : from["chunks"]) {
      // Only keys below that of the state: a value that others wrote must not name other secrets.
      const std::string key = chunk.is_string() ? chunk.get<std::string>() : "";
      if (!is_below(key, path_) || out.size() == kMaxChunks)
        throw sdk::Failure(DRIFTD_CORRUPT, "consul: " + path_ + ": its list of chunks is none");
      out.push_back(key);
    }
    return out;
  }

  const std::string path_, datacenter_, token_, auth_, base_;
  HttpPool http_;
};

}  // namespace

std::unique_ptr<Source> open_consul(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  auto out = std::make_unique<ConsulSource>(settings, from);
  from.finish();
  return out;
}

}  // namespace driftd::terraform
