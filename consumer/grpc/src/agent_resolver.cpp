// SPDX-License-Identifier: Apache-2.0
#include <openssl/crypto.h>
#include <mutex>

#include "agent_link.hpp"

namespace driftd::consumer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxRemembered = 4'096;  // references

void wipe(v1::ResolveCredentialsResponse& answer) {
  for (auto& one : *answer.mutable_credentials()) {
    std::string& value = *one.mutable_value();
    OPENSSL_cleanse(value.data(), value.size());
  }
}

class AgentResolver final : public CredentialResolver {
 public:
  explicit AgentResolver(std::shared_ptr<AgentLink> link) : link_(std::move(link)) {}

  Result<std::vector<Secret>> resolve(const std::vector<CredentialReference>& references,
                                      milliseconds max_time) override {
    const auto end = Clock::now() + max_time;
    std::map<std::string, std::vector<std::size_t>> by_backend;
    for (std::size_t i = 0; i < references.size(); ++i) by_backend[references[i].space].push_back(i);
    std::vector<Secret> out(references.size());
    for (const auto& [backend, places] : by_backend) {
      v1::ResolveCredentialsRequest request;
      request.set_backend(backend);
      for (const std::size_t place : places) request.add_references(references[place].name);
      const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
      auto values = ask(request, std::max(left, milliseconds(1)));
      if (!values) return tl::unexpected<Error>(values.error());
      for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move((*values)[i]);
    }
    return out;
  }

 private:
  Result<std::vector<Secret>> ask(const v1::ResolveCredentialsRequest& request, milliseconds max_time) {
    auto answer = link_->values(request, max_time);
    if (!answer) return without_answer(request, answer.error());
    if (answer->credentials_size() != request.references_size()) {
      wipe(*answer);
      return fail(Code::internal, "credentials of backend " + request.backend() +
                                      ": driftd's agent gave another number "
                                      "of values than it was asked for");
    }
    std::vector<Secret> out;
    for (const auto& one : answer->credentials()) out.emplace_back(std::string(one.value()));
    wipe(*answer);
    remember(request, out);
    return out;
  }

  /// Returns what the agent gave before, if it is only away. A refusal ends what it gave: the right may be gone.
  Result<std::vector<Secret>> without_answer(const v1::ResolveCredentialsRequest& request, const Error& error) {
    const std::lock_guard lock(mutex_);
    const bool away = error.code == Code::unavailable || error.code == Code::deadline;
    std::vector<Secret> out;
    for (const auto& reference : request.references()) {
      const auto found = last_.find({request.backend(), reference});
      if (away && found != last_.end()) out.push_back(found->second);
      if (!away && found != last_.end()) last_.erase(found);
    }
    if (away && static_cast<int>(out.size()) == request.references_size()) return out;
    return tl::unexpected<Error>(error);
  }

  void remember(const v1::ResolveCredentialsRequest& request, const std::vector<Secret>& values) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < request.references_size(); ++i) {
      const std::pair<std::string, std::string> key{request.backend(), request.references(i)};
      if (last_.size() < kMaxRemembered || last_.count(key) != 0) last_[key] = values[static_cast<std::size_t>(i)];
    }
  }

  const std::shared_ptr<AgentLink> link_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Secret> last_;  ///< backend and reference → value, in memory only
};

}  // namespace

std::unique_ptr<CredentialResolver> agent_resolver(std::shared_ptr<AgentLink> link) {
  return std::make_unique<AgentResolver>(std::move(link));
}

}  // namespace driftd::consumer
