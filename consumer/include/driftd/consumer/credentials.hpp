// SPDX-License-Identifier: Apache-2.0
// References to credentials, and who turns them into values. The grammar is a table of docs/consume.md.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/consumer/result.hpp"
#include "driftd/consumer/secret.hpp"

namespace driftd::consumer {

/// `env:NAME`, `file:/path`, `k8s:<namespace>/<name>#<key>` or `agent:<backend>#<reference>`. It names a credential and
/// is no secret itself.
struct CredentialReference {
  enum class Scheme { env, file, k8s, agent };
  Scheme scheme = Scheme::env;
  std::string name;   ///< the variable, the absolute path, the name of the Secret, or the agent's own reference
  std::string space;  ///< namespace of the Secret, or the backend in the agent's registry; empty for other schemes
  std::string key;    ///< key in the Secret's data; empty for other schemes
  bool operator==(const CredentialReference&) const = default;
};

/// Parses a reference. A message never quotes the text: somebody may have written a password in its place.
Result<CredentialReference> parse_reference(std::string_view text);
std::string render(const CredentialReference& reference);

/// Turns references of one scheme into values. Implementations are called from several threads at once.
class CredentialResolver {
 public:
  virtual ~CredentialResolver() = default;
  /// Returns one value for each reference, in their order. The values belong together: a user name and a password that
  /// are replaced at once are both old or both new. Ends within `max_time`. The error names the reference and why.
  virtual Result<std::vector<Secret>> resolve(const std::vector<CredentialReference>& references,
                                              std::chrono::milliseconds max_time) = 0;
};

/// Reads variables of this process's environment, as it was when the process started.
std::unique_ptr<CredentialResolver> env_resolver();

/// Reads files, such as those of a Secret that is mounted as a volume. Symbolic links are followed, so an atomic swap
/// of the volume's `..data` is seen whole or not at all. A value is up to 1 MiB, without one newline at its end; an
/// empty one is an error.
std::unique_ptr<CredentialResolver> file_resolver();

/// Where the Kubernetes API is and who asks. The defaults are what a pod has.
struct KubeAccess {
  std::string server;  ///< `https://host:port`; empty: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";  ///< read for each request: it
                                                                                   ///< rotates
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

/// Reads Secrets from the Kubernetes API with the rights of this pod's own service account (`get` on the Secrets). The
/// server's certificate is checked against `ca_file`; redirects and proxies are not used. One request for each Secret.
std::unique_ptr<CredentialResolver> kube_resolver(KubeAccess access = {});

/// The resolvers of an application, one for each scheme. `agent:` is off until agent_resolver() is set for it
/// (driftd/consumer/agent.hpp). Any thread.
class Resolvers {
 public:
  /// Has `env:`, `file:` and `k8s:` with their defaults.
  Resolvers();
  /// Replaces the resolver of a scheme. Null turns the scheme off. Before the first use only.
  void set(CredentialReference::Scheme scheme, std::shared_ptr<CredentialResolver> resolver);
  /// Resolves member → reference to member → value. All or none.
  Result<std::map<std::string, Secret>> resolve(const std::map<std::string, std::string>& references,
                                                std::chrono::milliseconds max_time) const;

 private:
  std::map<CredentialReference::Scheme, std::shared_ptr<CredentialResolver>> by_scheme_;
};

}  // namespace driftd::consumer
