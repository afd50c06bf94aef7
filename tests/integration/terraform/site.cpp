// SPDX-License-Identifier: Apache-2.0
#include "site.hpp"

#include <stdexcept>
#include <utility>

#include "support/kube.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

std::string host_of(const std::string& origin) { return origin.substr(origin.find("://") + 3); }

/// Runs a command. Throws if it fails.
void run_or_throw(const std::vector<std::string>& command) {
  const Output out = run(command);
  if (out.code != 0) throw std::runtime_error(command[0] + ": " + out.out + out.err);
}

/// A site on tests/servers/state. `control` says how the server answers when driftd has its right.
class LocalSite : public Site {
 public:
  int port() const override { return server_.port(); }
  std::string password() const override { return "canary-of-the-site"; }
  const char* ca_setting() const override { return "ca_file"; }
  void stop() override { server_.stop(); }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }
  void revoke() override { server_.control({{"status", 403}}); }
  void grant() override { server_.control(control_); }

 protected:
  explicit LocalSite(json control) : control_(std::move(control)) { grant(); }
  void put(const std::string& method, const std::string& path, const std::string& header,
           const std::string& state) const {
    run_or_throw({"curl", "-sf", "-X", method, "-H", header, "--data-binary", "@" + dir_.write("state", state),
                  server_.url(path)});
  }
  TempDir dir_;
  StateServer server_;
  json control_;
};

class HttpSite final : public LocalSite {
 public:
  HttpSite() : LocalSite({{"user", "driftd"}, {"password", "canary-of-the-site"}}) {}
  json backend(const std::string& origin, const std::string& secret) const override {
    return {{"type", "http"}, {"address", origin + "/state/platform"}, {"username", "driftd"}, {"password", secret}};
  }
  std::string right() const override { return "/state/platform"; }
  void publish(int serial, int value) override {
    put("POST", "/state/platform",
        "Authorization: Basic ZHJpZnRkOmNhbmFyeS1vZi10aGUtc2l0ZQ==", state_text(serial, value));
  }
};

class ConsulSite final : public LocalSite {  // not Consul, but a local server with its documented API
 public:
  ConsulSite() : LocalSite({{"token", "canary-of-the-site"}}) {}
  json backend(const std::string& origin, const std::string& secret) const override {
    return {{"type", "consul"},
            {"address", host_of(origin)},
            {"scheme", origin.substr(0, origin.find(':'))},
            {"path", "tf/platform"},
            {"access_token", secret}};
  }
  std::string right() const override { return "key_prefix \"tf/platform\" { policy = \"read\" }"; }
  void publish(int serial, int value) override {
    put("PUT", "/v1/kv/tf/platform", "X-Consul-Token: canary-of-the-site", state_text(serial, value));
  }
};

class CloudSite final : public LocalSite {  // not HCP Terraform, but a local server with its documented API
 public:
  CloudSite() : LocalSite({{"token", "canary-of-the-site"}}) {}
  json backend(const std::string& origin, const std::string& secret) const override {
    json control = control_;
    control["origin"] = origin;
    server_.control(control);
    return {{"type", "cloud"},
            {"hostname", origin},
            {"organization", "acme"},
            {"workspaces", {{"name", "platform"}}},
            {"token", secret}};
  }
  std::string right() const override { return "read state versions of acme/platform"; }
  void revoke() override { server_.control({{"status", 404}}); }  // HCP Terraform hides what a token may not see
  void publish(int serial, int value) override {
    control_.update({{"state_version", "sv-" + std::to_string(serial)},
                     {"serial", serial},
                     {"state", state_text(serial, value)},
                     {"run", {{"id", "run-1"}, {"status", "applied"}}}});
    grant();
  }
};

class S3Site final : public Site {
 public:
  S3Site() : moto_(true) { grant(); }
  int port() const override { return moto_.port(); }
  json backend(const std::string& origin, const std::string& secret) const override {
    return {{"type", "s3"},
            {"bucket", "states"},
            {"key", "tf/state"},
            {"region", "eu-central-1"},
            {"use_path_style", true},
            {"endpoints", {{"s3", origin}}},
            {"access_key", moto_.keys()["stranger"]["access"]},
            {"secret_key", secret}};
  }
  const char* ca_setting() const override { return "custom_ca_bundle"; }
  std::string password() const override { return moto_.keys()["stranger"]["secret"]; }
  std::string right() const override { return "s3:GetObject on arn:aws:s3:::states/tf/state"; }
  void publish(int serial, int value) override {
    const json& writer = moto_.keys()["writer"];
    run_or_throw({"curl", "-sf", "--aws-sigv4", "aws:amz:eu-central-1:s3", "-u",
                  writer["access"].get<std::string>() + ":" + writer["secret"].get<std::string>(), "-H",
                  "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-T", dir_.write("state", state_text(serial, value)),
                  moto_.url() + "/states/tf/state"});
  }
  void stop() override { moto_.stop(); }
  void pause() override { moto_.pause(); }
  void resume() override { moto_.resume(); }
  void revoke() override { moto_.deny_stranger(); }
  void grant() override { moto_.allow_stranger(); }

 private:
  TempDir dir_;
  Moto moto_;
};

class KubernetesSite final : public Site {
 public:
  KubernetesSite() {
    kube_.create_namespace("tf");
    token_ = kube_.account("tf", "driftd", rules_);
  }
  int port() const override { return kube_.port(); }
  bool speaks_tls() const override { return true; }
  json backend(const std::string& origin, const std::string& secret) const override {
    return {{"type", "kubernetes"},
            {"secret_suffix", "platform"},
            {"namespace", "tf"},
            {"host", origin},
            {"token", secret}};
  }
  const char* ca_setting() const override { return "cluster_ca_certificate_file"; }
  std::string password() const override { return token_; }
  std::string right() const override { return "get, list, watch on secrets in namespace tf"; }
  void publish(int serial, int value) override {
    const Output zipped =
        run({"sh", "-c", "gzip -c \"$0\" | base64 -w0", dir_.write("state", state_text(serial, value))});
    const json data = {{"tfstate", zipped.out}};
    if (std::exchange(published_, true)) {
      kube_.patch("/api/v1/namespaces/tf/secrets/tfstate-default-platform", {{"data", data}});
      return;
    }
    const json labels = {{"tfstate", "true"}, {"tfstateSecretSuffix", "platform"}, {"tfstateWorkspace", "default"}};
    kube_.create("/api/v1/namespaces/tf/secrets",
                 {{"metadata", {{"name", "tfstate-default-platform"}, {"labels", labels}}}, {"data", data}});
  }
  void stop() override { kube_.stop(); }
  void pause() override { kube_.pause(); }
  void resume() override { kube_.resume(); }
  void revoke() override { kube_.patch(role_, {{"rules", json::array()}}); }
  void grant() override { kube_.patch(role_, {{"rules", rules_}}); }

 private:
  const json rules_ = json::parse(R"([{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list","watch"]}])");
  const std::string role_ = "/apis/rbac.authorization.k8s.io/v1/namespaces/tf/roles/driftd";
  TempDir dir_;
  KubeServer kube_;
  std::string token_;
  bool published_ = false;
};

}  // namespace

std::unique_ptr<Site> make_site(const std::string& name) {
  if (name == "http") return std::make_unique<HttpSite>();
  if (name == "consul") return std::make_unique<ConsulSite>();
  if (name == "cloud") return std::make_unique<CloudSite>();
  if (name == "s3") return std::make_unique<S3Site>();
  return std::make_unique<KubernetesSite>();
}

std::string state_text(int serial, int value, const std::string& lineage) {
  std::string noise;
  unsigned long long x = 88172645463325252ull + static_cast<unsigned>(value);
  while (noise.size() < 24'000) {  // xorshift, in hex: compresses to a half
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    noise += "0123456789abcdef"[x & 15];
  }
  const json resource = {{"mode", "managed"},
                         {"type", "terraform_data"},
                         {"name", "a"},
                         {"provider", "p"},
                         {"instances", {{{"attributes", {{"input", {{"value", value}}}, {"noise", noise}}}}}}};
  return R"({"version":4,"terraform_version":"1.10.6","serial":)" + std::to_string(serial) + R"(,"lineage":")" +
         lineage + R"(","outputs":{},"resources":)" + json::array({resource}).dump() + "}";
}

}  // namespace driftd::test
