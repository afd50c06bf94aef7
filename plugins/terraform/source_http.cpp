// SPDX-License-Identifier: Apache-2.0
// Terraform's http backend: GET of one address. 200: the state, 204 and 404: none; GitLab, Artifactory and others speak
// it.
#include "common/settings_reader.hpp"
#include "common/shown_url.hpp"
#include "terraform/http_pool.hpp"

namespace driftd::terraform {
namespace {

/// Returns true if a server that makes its ETags of a time in seconds, as nginx does, could give the same to another
/// state: this one was written within the second that the answer is of (RFC 9110, 8.8.2.2).
bool is_recent(const http::Response& answer) {
  const auto written = http::parse_date(answer.header("last-modified")), now = http::parse_date(answer.header("date"));
  return written && now && *now - *written < 2;
}

class HttpSource final : public Source {
 public:
  HttpSource(const Settings& settings, common::SettingsReader& from)
      : address_(base_url("address", from.required_text("address", "the URL of the state"))),
        shown_(common::shown_url(address_)),
        username_(from.text("username")),
        password_token_(from.text("password")),
        http_(settings, tls_of(from)) {
    for (auto& one : from.objects("headers")) {
      headers_.push_back({one.required_text("name", "the name of a header"), one.text("value")});
      one.finish();
    }
  }

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    Fetched out;
    auto headers = credentials(call);
    if (known.rfind("etag ", 0) == 0) headers.push_back("If-None-Match: " + known.substr(5));
    const http::Response answer = http_.get_into(call, address_, std::move(headers), out.state);
    out.sent_ns = answer.sent_ns;
    out.unchanged = answer.status == 304 && !known.empty();
    if (out.unchanged) return out;
    check(answer);
    out.state.finish();
    if (out.state.size() == 0) no_state(shown_);
    const std::string etag = answer.header("etag");
    out.stamp = etag.empty() || is_recent(answer) ? "hash " + out.state.hash() : "etag " + etag;
    out.unchanged = out.stamp == known;
    return out;
  }

  Probe probe(sdk::Call& call) override {
    const http::Response answer = http_.probe(call, address_, credentials(call));
    check(answer);
    return {answer.body};
  }

 private:
  struct Header {
    std::string name, value_token;
  };

  static http::Tls tls_of(common::SettingsReader& from) {
    http::Tls out;
    out.verify = !from.flag("skip_cert_verification", false);
    out.ca_pem = from.text("client_ca_certificate_pem");
    out.ca_file = from.text("ca_file");
    out.certificate_file = from.text("cert_file");
    out.key_file = from.text("key_file");
    return out;
  }

  std::vector<std::string> credentials(sdk::Call& call) const {
    std::vector<std::string> out;
    if (!username_.empty()) {
      std::string password = call.secret(password_token_);
      out.push_back(basic_auth(username_, password));
      http::wipe(password);
    }
    for (const auto& [name, token] : headers_) {
      std::string value = call.secret(token);
      out.push_back(name + ": " + value);
      http::wipe(value);
    }
    return out;
  }

  void check(const http::Response& answer) const {
    if (answer.status == 404 || answer.status == 204) no_state(shown_);
    if (answer.status != 200) {
      refuse(answer, {"GET " + shown_, "GET " + shown_,
                      username_.empty() ? "a request without user" : "the user " + username_});
    }
  }

  const std::string address_, shown_, username_, password_token_;
  std::vector<Header> headers_;
  HttpPool http_;
};

}  // namespace

std::unique_ptr<Source> open_http(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  auto out = std::make_unique<HttpSource>(settings, from);
  from.finish();
  return out;
}

}  // namespace driftd::terraform
