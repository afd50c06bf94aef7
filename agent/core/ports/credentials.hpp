// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/secret.hpp"
#include "base/task.hpp"
#include "core/audit.hpp"

namespace driftd::core {

/// Who asks for the values behind references. The transport has verified all of it. A caller is one of three: a process
/// on a Unix socket, the owner of a certificate, or the owner of a token.
struct CredentialCaller {
  std::string name;                       ///< for the audit log: user, `cert:order-runner`, `token:ci`
  Caller process;                         ///< uid -1 if it is not a process
  std::vector<std::uint32_t> gids;        ///< groups of the process, also its primary one
  std::vector<std::string> certificates;  ///< every name of its certificate
  std::string token;                      ///< name of its token
  bool confidential = false;              ///< nobody else can read what is sent to it: a Unix socket, or TLS
};

/// Which references of which backend.
struct CredentialRequest {
  CredentialCaller caller;
  std::string backend;
  std::vector<std::string> references;  ///< `${file:redis/password}`, as GetBackend shows it, or `file:redis/password`
};

/// Turns references into values for those who hold the right `resolve`. Core thread.
class Credentials {
 public:
  virtual ~Credentials() = default;
  /// Returns one value for each reference, in their order; all, or none. They belong together: of files that are
  /// replaced at once, all are old or all are new. A line of the audit log is durable before this returns a value.
  /// `denied`: no such right; `not_found`: not a reference of this backend; `throttled`: too many requests; `invalid`:
  /// the request, or the file of the reference, is wrong; `unavailable`: the value or the audit log, retry later.
  /// Messages contain no value.
  virtual Task<Result<std::vector<Secret>>> resolve(CredentialRequest request) = 0;
};

}  // namespace driftd::core
