// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace driftd::op {

/// A backend of the agent's registry.
struct Registered {
  std::string type, endpoint;
  std::string source;      ///< file, discovered or manual
  std::string defined_at;  ///< the line of the file, the source that discovered it, or who registered it
  bool operator==(const Registered&) const = default;
};

/// What the agent's registry says of one backend.
struct RegistryAnswer {
  enum class State {
    off,          ///< no agent is configured
    waiting,      ///< it was not asked yet, or the connection was lost a moment ago
    unreachable,  ///< `reason`
    known         ///< `backend`, nullopt if the registry does not have it
  };
  State state = State::off;
  std::optional<Registered> backend;
  std::string reason;
};

/// The registry of the agent, as far as it was read. Any thread.
class Registry {
 public:
  virtual ~Registry() = default;
  virtual RegistryAnswer find(const std::string& backend) const = 0;
  /// Asks the agent for this backend again. An event may come before the registry has what it announces.
  virtual void ask_again(const std::string& backend) = 0;
};

/// Of an operator without an agent.
class NoRegistry final : public Registry {
 public:
  RegistryAnswer find(const std::string&) const override { return {}; }
  void ask_again(const std::string&) override {}
};

}  // namespace driftd::op
