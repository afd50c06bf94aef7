// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driftd/consumer/result.hpp"

namespace driftd::resolver {

/// One slot of the application and what it is bound to: a backend of the agent's registry, or a Service with a Secret.
struct Binding {
  std::string slot;
  std::string backend;   ///< name in the agent's registry; empty if `service` is there
  std::string service;   ///< `host:port`; several with commas
  std::string mounted;   ///< folder below $SERVICE_BINDING_ROOT, as servicebinding.io mounts a Secret
  std::string secret;    ///< name of a Secret in the Pod's namespace; may be empty
  std::string key;       ///< of the password in the Secret; empty: the usual ones
  std::string type;      ///< of a Service; empty: by its port
  bool required = true;  ///< false: the file may be without it
  bool operator==(const Binding&) const = default;
};

/// Parses $BACKEND_BINDINGS: names with commas or white space between them (`state_store=orders-cache`, or
/// `orders-cache` for a slot of the same name), or an object in JSON or YAML, slot → name, or → {`backendRef`,
/// `required`}, or →
/// {`service`, `secret`, `key`, `type`, `required`}, or → {`serviceBinding`, `required`}. At least 1, up to 1,024. A
/// message does not quote values.
consumer::Result<std::vector<Binding>> parse_bindings(std::string_view text);

}  // namespace driftd::resolver
