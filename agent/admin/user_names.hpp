// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/task.hpp"

namespace driftd::admin {

/// Returns the system's name of a uid, or `uid:1234` if it has none. May block for as long as a name service does, so
/// never call it on the core thread.
std::string user_name(std::uint32_t uid);

/// Names of users for the audit log. A name service that hangs (LDAP, sssd) blocks only a short-lived thread: after
/// kPatience the caller gets `uid:1234`, or the name that was found before. As long as the service hangs, later callers
/// get it at once. Core thread.
class UserNames {
 public:
  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::seconds kKept{60};  ///< a found name is looked up again after this time
  /// Returns the name, `uid:1234` or the earlier name; never fails. `self` is kept alive until it returns.
  static Task<std::string> of(std::shared_ptr<UserNames> self, std::uint32_t uid);

  /// The look-up, which runs on its own thread. Tests replace it before the first call of of().
  std::function<std::string(std::uint32_t)> find = user_name;

 private:
  struct Answer;  ///< one look-up, shared with its thread, which may outlive this object
  /// Starts a look-up. `meanwhile` is shown until it ends. Null if no thread could be started or too many are under
  /// way.
  std::shared_ptr<Answer> ask(std::uint32_t uid, std::string meanwhile);
  std::map<std::uint32_t, std::shared_ptr<Answer>> answers_;  ///< by uid; at most 256
};

}  // namespace driftd::admin
