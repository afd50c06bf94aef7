// SPDX-License-Identifier: Apache-2.0
#include "resolver/lookup.hpp"

#include <filesystem>

#include "k8s/backend_types.hpp"

namespace driftd::resolver {
namespace {

using consumer::Code;
using consumer::Result;
using consumer::Secret;
using consumer::SlotConfig;

constexpr std::chrono::milliseconds kResolveTime{5'000};

std::string type_of(const Binding& binding, int port) {
  if (!binding.type.empty()) return k8s::canonical_type(binding.type);
  for (const auto& known : k8s::kBackendTypes) {
    if (known.port == port) return known.name;
  }
  return {};
}

/// Keys of a password, as the charts name them.
std::vector<std::string> password_keys(const Binding& binding, const std::string& type) {
  if (!binding.key.empty()) return {binding.key};
  std::vector<std::string> out = {"password", type + "-password"};
  if (type == "mysql" || type == "mongodb") out.push_back(type + "-root-password");
  return out;
}

}  // namespace

Lookup::Lookup(const Settings& settings, std::shared_ptr<consumer::AgentLink> link)
    : space_(settings.space),
      mounts_(settings.service_bindings) {
  using Scheme = consumer::CredentialReference::Scheme;
  resolvers_.set(Scheme::k8s, consumer::kube_resolver(settings.kube));
  if (!link) return;
  resolvers_.set(Scheme::agent, consumer::agent_resolver(link));
  // No file as the fallback: the file is what this program writes.
  source_ = consumer::agent_source(std::move(link), settings.resolved_by, nullptr);
}

Result<SlotConfig> Lookup::find(const Binding& binding) {
  auto out = !binding.mounted.empty()  ? of_mounted(binding)
             : binding.backend.empty() ? of_service(binding)
                                       : of_backend(binding);
  if (out) return out;
  return consumer::fail(out.error().code, "failed to bind slot " + binding.slot + ": " + out.error().message);
}

Result<SlotConfig> Lookup::of_backend(const Binding& binding) {
  if (!source_) return consumer::fail(Code::invalid, "there is no --agent to ask for the backend " + binding.backend);
  auto backend = source_->get(binding.backend, binding.slot);
  if (!backend) return tl::unexpected(backend.error());
  auto values = resolvers_.resolve(backend->credentials, kResolveTime);
  if (!values) return tl::unexpected(values.error());
  SlotConfig out;
  out.credentials = backend->clear;
  out.credentials.merge(*values);
  out.backend = std::move(*backend);
  return out;
}

Result<SlotConfig> Lookup::of_service(const Binding& binding) {
  SlotConfig out;
  out.backend.endpoint = binding.service;
  out.backend.type = type_of(binding, out.port());
  if (out.backend.type.empty()) {
    return consumer::fail(Code::invalid, "the port " + std::to_string(out.port()) +
                                             " of `service` is of no known type; "
                                             "expected `type` in the binding, such as redis or kafka");
  }
  if (binding.secret.empty()) return out;
  auto values = secret_of(binding, out.backend.type);
  if (!values) return tl::unexpected(values.error());
  out.credentials = std::move(*values);
  return out;
}

/// The well-known entries of the specification. All are read together, so that they are of one Secret's version.
Result<SlotConfig> Lookup::of_mounted(const Binding& binding) {
  const std::string folder = mounts_ + (mounts_.ends_with('/') ? "" : "/") + binding.mounted;
  References references = {{"type", "file:" + folder + "/type"}};
  for (const char* entry : {"provider", "host", "port", "uri", "username", "password", "token"}) {
    std::error_code failed;
    if (std::filesystem::exists(folder + "/" + entry, failed)) references[entry] = "file:" + folder + "/" + entry;
  }
  auto values = resolvers_.resolve(references, kResolveTime);
  if (!values) return tl::unexpected(values.error());
  SlotConfig out;
  const auto take = [&values](const char* entry) {
    const auto found = values->extract(entry);
    return found ? found.mapped().reveal() : std::string();
  };
  out.backend.type = k8s::canonical_type(take("type"));
  const std::string host = take("host"), port = take("port"), provider = take("provider");
  if (!host.empty()) out.backend.endpoint = (host.find(':') == host.npos ? host : "[" + host + "]");
  if (!host.empty() && !port.empty()) out.backend.endpoint += ":" + port;
  if (!provider.empty()) out.backend.metadata["provider"] = provider;
  out.credentials = std::move(*values);
  return out;
}

Result<std::map<std::string, Secret>> Lookup::secret_of(const Binding& binding, const std::string& type) {
  const std::string secret = "k8s:" + space_ + "/" + binding.secret + "#";
  std::vector<References> tries;
  if (const auto known = keys_.find(binding.slot); known != keys_.end()) tries.push_back(known->second);
  const auto keys = password_keys(binding, type);
  for (const auto& key : keys) tries.push_back({{"username", secret + "username"}, {"password", secret + key}});
  for (const auto& key : keys) tries.push_back({{"password", secret + key}});
  for (const auto& references : tries) {
    auto values = resolvers_.resolve(references, kResolveTime);
    if (values) {
      keys_[binding.slot] = references;
      return values;
    }
    if (values.error().code != Code::not_found) return values;
  }
  std::string looked_for;
  for (const auto& key : keys) looked_for += (looked_for.empty() ? "" : ", ") + key;
  return consumer::fail(Code::not_found, "the Secret " + binding.secret + " in the namespace " + space_ +
                                             " does not exist or has none of the keys " + looked_for +
                                             "; create it, or name the key in the binding (`key`)");
}

}  // namespace driftd::resolver
