// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "resolver/settings.hpp"

namespace driftd::resolver {

/// Turns a binding into what an application connects with: the description from the agent's registry or of the binding
/// itself, the credentials by the consumer library's resolvers, with this process's own rights. One thread.
class Lookup {
 public:
  /// `link` may be null if no binding names a backend.
  Lookup(const Settings& settings, std::shared_ptr<consumer::AgentLink> link);
  /// The error begins with `failed to bind slot <slot>`.
  consumer::Result<consumer::SlotConfig> find(const Binding& binding);

 private:
  using References = std::map<std::string, std::string>;
  consumer::Result<consumer::SlotConfig> of_backend(const Binding& binding);
  consumer::Result<consumer::SlotConfig> of_mounted(const Binding& binding);
  consumer::Result<consumer::SlotConfig> of_service(const Binding& binding);
  consumer::Result<std::map<std::string, consumer::Secret>> secret_of(const Binding& binding, const std::string& type);

  const std::string space_, mounts_;
  consumer::Resolvers resolvers_;
  std::unique_ptr<consumer::BackendSource> source_;
  std::map<std::string, References> keys_;  ///< slot → the keys that its Secret had last
};

}  // namespace driftd::resolver
