// SPDX-License-Identifier: Apache-2.0
// Terraform's s3 backend, also at MinIO, Ceph and others: one object; workspaces below `env:/`.
#include "common/settings_reader.hpp"
#include "terraform/http_pool.hpp"
#include "terraform/sigv4.hpp"

namespace driftd::terraform {
namespace {

/// Returns a path as it is signed and sent; `/` stays.
std::string escape_path(const std::string& key) {
  std::string out;
  for (std::size_t at = 0; at <= key.size();) {
    const auto slash = std::min(key.find('/', at), key.size());
    out += "/" + http::escape(key.substr(at, slash - at));
    at = slash + 1;
  }
  return out;
}

/// Returns the code of `<Code>NoSuchKey</Code>`, which says more about an S3 error than the status.
std::string code_of(const std::string& body) {
  const auto at = body.find("<Code>");
  const auto end = body.find("</Code>");
  return at == std::string::npos || end == std::string::npos || end < at || end - at > 100
             ? ""
             : body.substr(at + 6, end - at - 6);
}

class S3Source final : public Source {
 public:
  S3Source(const Settings& settings, common::SettingsReader& from)
      : bucket_(from.required_text("bucket", "the name of a bucket")),
        key_(key_of(settings, from)),
        region_(from.required_text("region", "the bucket's region")),
        access_key_(from.text("access_key")),
        secret_token_(from.text("secret_key")),
        session_token_(from.text("token")),
        http_(settings, tls_of(from)) {
    common::SettingsReader endpoints = from.object("endpoints");
    const std::string given = endpoints.text("s3", from.text("endpoint"));
    endpoints.finish();
    const std::string base =
        given.empty() ? "https://s3." + region_ + ".amazonaws.com" : base_url("endpoints.s3", given);
    const bool path_style = from.flag("use_path_style", from.flag("force_path_style", false));
    const auto host_at = base.find("://") + 3;
    host_ = (path_style ? "" : bucket_ + ".") + base.substr(host_at);
    path_ = (path_style ? "/" + http::escape(bucket_) : "") + escape_path(key_);
    url_ = base.substr(0, host_at) + host_ + path_;
    if (access_key_.empty() != secret_token_.empty()) {
      from.refuse("access_key", "both access_key and secret_key, or neither (a public object)", "one of them",
                  "add the other");
    }
  }

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    Fetched out;
    auto headers = sign(call);
    if (!known.empty()) headers.push_back("If-None-Match: " + known.substr(0, known.find(' ')));
    const http::Response answer = http_.get_into(call, url_, std::move(headers), out.state);
    out.sent_ns = answer.sent_ns;
    out.unchanged = answer.status == 304 && !known.empty();
    if (out.unchanged) return out;
    check(answer);
    out.state.finish();
    if (out.state.size() == 0) no_state(name());
    const std::string version = answer.header("x-amz-version-id");
    out.stamp = answer.header("etag") + (version.empty() ? "" : " " + version);
    if (!version.empty()) out.provenance["state_version"] = version;
    return out;
  }

  Probe probe(sdk::Call& call) override {
    const http::Response answer = http_.probe(call, url_, sign(call));
    check(answer);
    return {answer.body};
  }

 private:
  static std::string key_of(const Settings& settings, common::SettingsReader& from) {
    const std::string key = from.required_text("key", "the key of the state in its bucket");
    const std::string prefix = from.text("workspace_key_prefix", "env:");
    return settings.workspace == "default" ? key : prefix + "/" + settings.workspace + "/" + key;
  }
  static http::Tls tls_of(common::SettingsReader& from) {
    http::Tls out;
    out.ca_file = from.text("custom_ca_bundle");
    out.verify = !from.flag("insecure", false);
    return out;
  }
  std::string name() const { return "s3://" + bucket_ + "/" + key_; }

  std::vector<std::string> sign(sdk::Call& call) const {
    if (access_key_.empty()) return {};
    AwsCredentials credentials{access_key_, call.secret(secret_token_), call.secret(session_token_)};
    AwsRequest request;
    request.host = host_;
    request.path = path_;
    request.region = region_;
    request.now_ns = call.now_ns();
    auto out = sign_v4(request, credentials);
    http::wipe(credentials.secret_key);
    http::wipe(credentials.session_token);
    return out;
  }

  void check(const http::Response& answer) const {
    if (answer.status == 200) return;
    const std::string code = code_of(answer.body);
    const std::string what = "GET " + name() + (code.empty() ? "" : " (" + code + ")");
    if (code == "NoSuchBucket") throw sdk::Failure(DRIFTD_UNAVAILABLE, what + ": there is no such bucket");
    if (answer.status == 404) no_state(name());
    for (const char* refused :
         {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}) {
      if (code == refused)
        throw sdk::Failure(DRIFTD_UNAUTHENTICATED, what + ": the access key, its secret or its token was refused");
    }
    if (code == "RequestTimeTooSkewed")
      throw sdk::Failure(DRIFTD_UNAVAILABLE, what + ": this machine's clock is wrong");
    if (answer.status == 301 || code == "AuthorizationHeaderMalformed" || code == "PermanentRedirect") {
      throw sdk::Failure(DRIFTD_INVALID, what + ": settings.backend.region or its endpoint is not the bucket's");
    }
    refuse(answer, {what, "s3:GetObject on arn:aws:s3:::" + bucket_ + "/" + key_, "a request without access key"});
  }

  const std::string bucket_, key_, region_, access_key_, secret_token_, session_token_;
  std::string host_, path_, url_;
  HttpPool http_;
};

}  // namespace

std::unique_ptr<Source> open_s3(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  auto out = std::make_unique<S3Source>(settings, from);
  from.finish();
  return out;
}

}  // namespace driftd::terraform
