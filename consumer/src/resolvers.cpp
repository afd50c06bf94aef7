// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {
namespace {

class EnvResolver final : public CredentialResolver {
 public:
  Result<std::vector<Secret>> resolve(const std::vector<CredentialReference>& references,
                                      std::chrono::milliseconds) override {
    std::vector<Secret> out;
    for (const auto& reference : references) {
      const char* value = std::getenv(reference.name.c_str());
      if (value == nullptr) return fail(Code::not_found, render(reference) + ": the variable is not set");
      if (*value == '\0') return fail(Code::invalid, render(reference) + ": the variable is empty");
      out.emplace_back(value);
    }
    return out;
  }
};

const char* name_of(CredentialReference::Scheme scheme) {
  return scheme == CredentialReference::Scheme::env    ? "env"
         : scheme == CredentialReference::Scheme::file ? "file"
         : scheme == CredentialReference::Scheme::k8s  ? "k8s"
                                                       : "agent";
}

}  // namespace

std::unique_ptr<CredentialResolver> env_resolver() { return std::make_unique<EnvResolver>(); }

Resolvers::Resolvers() {
  set(CredentialReference::Scheme::env, env_resolver());
  set(CredentialReference::Scheme::file, file_resolver());
  set(CredentialReference::Scheme::k8s, kube_resolver());
}

void Resolvers::set(CredentialReference::Scheme scheme, std::shared_ptr<CredentialResolver> resolver) {
  by_scheme_[scheme] = std::move(resolver);
}

Result<std::map<std::string, Secret>> Resolvers::resolve(const std::map<std::string, std::string>& references,
                                                         std::chrono::milliseconds max_time) const {
  const auto end = std::chrono::steady_clock::now() + max_time;
  std::map<CredentialReference::Scheme, std::pair<std::vector<std::string>, std::vector<CredentialReference>>> batches;
  for (const auto& [member, text] : references) {
    const auto reference = parse_reference(text);
    if (!reference) return fail(reference.error().code, "credentials." + member + ": " + reference.error().message);
    batches[reference->scheme].first.push_back(member);
    batches[reference->scheme].second.push_back(*reference);
  }
  std::map<std::string, Secret> out;
  for (const auto& [scheme, batch] : batches) {
    const auto found = by_scheme_.find(scheme);
    if (found == by_scheme_.end() || !found->second) {
      return fail(Code::denied, "credentials." + batch.first[0] + ": `" + name_of(scheme) +
                                    ":` references are turned off in this application");
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fail(Code::deadline, "credentials." + batch.first[0] + ": the time was over");
    auto values = found->second->resolve(batch.second, left);
    if (!values) return tl::unexpected<Error>(values.error());
    if (values->size() != batch.first.size()) {
      return fail(Code::internal,
                  std::string("the resolver of `") + name_of(scheme) + ":` returned another number of values");
    }
    for (std::size_t i = 0; i < values->size(); ++i) out[batch.first[i]] = std::move((*values)[i]);
  }
  return out;
}

}  // namespace driftd::consumer
