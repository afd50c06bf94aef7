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

/// The system's name of a uid; `uid:1234` when it knows none. May take as long as a name service does: not on the core
/// thread.
std::string user_name(std::uint32_t uid);

/// Names of users for the audit log. A name service that hangs (LDAP, sssd) holds a short-lived thread of its own and
/// nobody else: whoever asks gets `uid:1234`, or the name as it was found before, after kPatience, and at once while it
/// still hangs. Core thread.
class UserNames {
 public:
  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::seconds kKept{60};  ///< a name that was found is asked for again after it
  static Task<std::string> of(std::shared_ptr<UserNames> self, std::uint32_t uid);

  /// Runs on the thread. For tests; before the first question.
  std::function<std::string(std::uint32_t)> find = user_name;

 private:
  struct Answer;
  std::shared_ptr<Answer> ask(std::uint32_t uid, std::string meanwhile);
  std::map<std::uint32_t, std::shared_ptr<Answer>> answers_;
};

}  // namespace driftd::admin
