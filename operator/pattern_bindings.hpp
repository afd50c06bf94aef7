// SPDX-License-Identifier: Apache-2.0
// Which backend each slot of a PrismPattern has, and how it is reached. Pure but for what it looks up in the view.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/backend_status.hpp"
#include "operator/cluster_view.hpp"

namespace driftd::op {

struct Binding {
  enum class State {
    bound,
    missing,    ///< no such backend
    not_ready,  ///< something that it needs is missing or cannot be read
    error       ///< the PrismPattern must be corrected
  };
  std::string slot;
  State state = State::error;
  std::string backend;  ///< name of the PrismBackend; empty for `discover`
  std::string message;  ///< why it is not bound
  std::string type, endpoint;
  std::string host, port;  ///< of the first endpoint
  std::string config;      ///< settings of the backend as JSON; empty: none
  /// Secret with the credentials, always in the namespace of the PrismPattern; empty: none.
  std::string secret, username_key, password_key;
  std::string secret_version;  ///< changes with what the Secret holds
  /// The Secret of another namespace, and its keys, of which the operator keeps a copy in `secret`.
  std::optional<k8s::Ref> shared_from;
  std::string shared_username_key, shared_password_key;
};

struct Bindings {
  std::vector<Binding> slots;
  std::vector<k8s::Ref> references;  ///< a change of one of them may change a binding
  bool all_bound() const;
};

/// Looks at the backend of each slot.
Bindings bindings_of(const nlohmann::json& pattern, const ClusterView& view, const Limits& limits);

/// What the environment variables of a slot begin with: MESSAGE_SOURCE of `message_source`.
std::string env_prefix(const std::string& slot);

}  // namespace driftd::op
