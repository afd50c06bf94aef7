// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kube/json_access.hpp"
#include "kube/reflector.hpp"
#include "support/hosted_call.hpp"
#include "support/kube.hpp"

namespace driftd::test {

using nlohmann::json;

/// The API server of a process, and a client of it.
class KubeClient : public ::testing::Test {
 protected:
  KubeClient() {
    if (kube_ == nullptr) kube_ = std::make_unique<KubeServer>();
  }
  static KubeServer& kube() { return *kube_; }
  static kube::Connection connection() {
    kube::Connection out;
    out.server = kube().server();
    out.tls.ca_file = kube().ca_file();
    out.identification.token = kube().admin_token();
    return out;
  }
  /// The same through a relay.
  static kube::Connection connection(const Relay& relay) {
    kube::Connection out = connection();
    out.server = "https://127.0.0.1:" + std::to_string(relay.port());
    return out;
  }
  static std::string fresh_namespace() {
    static int last = 0;
    const std::string name = "kube-" + std::to_string(++last);
    kube().create_namespace(name);
    return name;
  }
  static kube::Resource config_maps() { return {"config_map", "/api/v1", "configmaps", "ConfigMap", true, {}, {}}; }
  static kube::Resource secrets() { return {"secret", "/api/v1", "secrets", "Secret", true, {}, {}}; }
  static kube::Resource prism_backends() {
    return {"prism_backend", "/apis/prism.io/v1alpha1", "prismbackends", "PrismBackend", true, {}, {}};
  }
  static std::string path(const kube::Resource& resource, const std::string& space, const std::string& name = {}) {
    return resource.path(space, name);
  }
  static json make(const kube::Resource& resource, const std::string& space, const std::string& name,
                   const json& labels = json::object()) {
    return kube().create(resource.path(space), {{"metadata", {{"name", name}, {"labels", labels}}}});
  }

 private:
  static inline std::unique_ptr<KubeServer> kube_;
};

/// A reflector that runs on a thread of its own, and what it has reported. Any thread may ask.
class Following : kube::ReflectorHandler {
 public:
  Following(kube::Connection connection, std::vector<kube::Followed> followed)
      : connection_(std::move(connection)),
        reflector_(api_, std::move(followed), *this),
        thread_([this] { run(); }) {}
  ~Following() { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    hosted_->cancel();
    thread_.join();
  }
  /// Stops it and calls run() again.
  void run_again() {
    stop();
    hosted_ = std::make_unique<HostedCall>();
    thread_ = std::thread([this] { run(); });
  }
  /// The names of the objects of a type that exist, as far as it was reported.
  std::vector<std::string> names(const std::string& plural) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    const auto of_type = objects_.find(plural);
    if (of_type == objects_.end()) return out;
    for (const auto& [name, uid] : of_type->second) out.push_back(name);
    return out;
  }
  /// What was reported of one object in its order: `+` exists, `-` gone, each with the uid.
  std::vector<std::string> history(const std::string& plural, const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = history_.find(plural + "/" + name);
    return found == history_.end() ? std::vector<std::string>() : found->second;
  }
  json last_gone() const {
    const std::lock_guard lock(mutex_);
    return last_gone_;
  }
  int synced(const std::string& plural) const { return counted(synced_, plural); }
  int recovered(const std::string& plural) const { return counted(recovered_, plural); }
  std::vector<sdk::Failure> failures(const std::string& plural) const {
    const std::lock_guard lock(mutex_);
    const auto found = failures_.find(plural);
    return found == failures_.end() ? std::vector<sdk::Failure>() : found->second;
  }
  /// What ended run(); empty while it runs, and if it was cancelled.
  std::string ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  bool has_synced() const { return reflector_.has_synced(); }

 private:
  void run() {
    sdk::Call call(hosted_->handle());
    try {
      reflector_.run(call);
    } catch (const std::exception& thrown) {
      const std::lock_guard lock(mutex_);
      ended_ = thrown.what();
    }
  }
  int counted(const std::map<std::string, int>& of, const std::string& plural) const {
    const std::lock_guard lock(mutex_);
    const auto found = of.find(plural);
    return found == of.end() ? 0 : found->second;
  }
  void on_object(const kube::Resource& resource, const kube::Observed& observed) override {
    const std::lock_guard lock(mutex_);
    const std::string name = observed.object.at("metadata").at("name"), uid = observed.object.at("metadata").at("uid");
    history_[resource.plural + "/" + name].push_back((observed.deleted ? "-" : "+") + uid);
    if (!observed.deleted) {
      objects_[resource.plural][name] = uid;
      return;
    }
    objects_[resource.plural].erase(name);
    last_gone_ = observed.object;
  }
  void on_synced(const kube::Resource& resource) override {
    const std::lock_guard lock(mutex_);
    ++synced_[resource.plural];
  }
  void on_failure(const kube::Resource& resource, const sdk::Failure& failure) override {
    const std::lock_guard lock(mutex_);
    failures_[resource.plural].push_back(failure);
  }
  void on_recovered(const kube::Resource& resource) override {
    const std::lock_guard lock(mutex_);
    ++recovered_[resource.plural];
  }

  const kube::Connection connection_;
  kube::Api api_{connection_};
  std::unique_ptr<HostedCall> hosted_ = std::make_unique<HostedCall>();
  mutable std::mutex mutex_;  ///< guards all that follows but the reflector and the thread
  std::map<std::string, std::map<std::string, std::string>> objects_;
  std::map<std::string, std::vector<std::string>> history_;
  std::map<std::string, int> synced_, recovered_;
  std::map<std::string, std::vector<sdk::Failure>> failures_;
  json last_gone_;
  std::string ended_;
  kube::Reflector reflector_;
  std::thread thread_;
};

}  // namespace driftd::test
