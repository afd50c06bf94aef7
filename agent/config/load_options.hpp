// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace driftd::config {

/// How a configuration is read.
struct LoadOptions {
  bool resolve_secrets = true;           ///< false (`driftd validate --no-secrets`): checks only the form of references
  bool literal_secrets = true;           ///< false: a secret in clear text is an error, not a warning
  bool resolve_key = false;              ///< resolves agent.installation_key anyway, if this process can read it
  std::vector<std::string> change_logs;  ///< globs of providers whose change log the command line enables
  bool regular_files = false;            ///< a secret file that is a FIFO or device is an error and is not waited for
  /// The environment for `${env:…}` and $CREDENTIALS_DIRECTORY. If empty, the process's environment is used.
  std::function<std::optional<std::string>(const std::string&)> environment;
};

}  // namespace driftd::config
