// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::common {

/// Which system is read: a cluster id, a system_identifier, the lineage of a state. The host asks health for it before
/// each refresh, but another may be there between the two: so what a refresh itself meets must be of that identity.
/// Empty: the system does not tell, which is right where it never did. Any thread.
class IdentityGuard {
 public:
  /// `other` begins the message about another one: `another cluster answers (cluster id`.
  explicit IdentityGuard(std::string other) : other_(std::move(other)) {}

  /// What health told the host.
  void on_health(const std::string& identity) {
    const std::lock_guard lock(mutex_);
    reported_ = identity;
    if (first_.empty()) first_ = identity;
  }

  /// For a refresh. The first one that meets another identity than the last (the cursor's, what health told first) is
  /// UNAVAILABLE: health then tells the host, which asks whether that is right, and only then refreshes.
  void check(const std::string& identity, const std::string& of_cursor) {
    const std::lock_guard lock(mutex_);
    if (judged_.empty()) judged_ = of_cursor.empty() ? first_ : of_cursor;
    if (is_unknown(identity, judged_)) return;
    const bool asked = refused_ == identity && reported_ == identity;
    if (!judged_.empty() && judged_ != identity && !asked) {
      refused_ = identity;
      refuse(identity, judged_);
    }
    judged_ = identity;
    refused_.clear();
  }

  /// For what follows a refresh: confirmations, discoveries.
  void check(const std::string& identity) const {
    const std::lock_guard lock(mutex_);
    const std::string& judged = judged_.empty() ? first_ : judged_;
    if (!is_unknown(identity, judged) && !judged.empty() && judged != identity) refuse(identity, judged);
  }

  /// Of the newest that was met, else what health told first; for a health that cannot tell it by itself.
  std::string newest() const {
    const std::lock_guard lock(mutex_);
    if (!refused_.empty()) return refused_;
    return judged_.empty() ? first_ : judged_;
  }

 private:
  static bool is_unknown(const std::string& identity, const std::string& judged) {
    if (!identity.empty() || judged.empty()) return identity.empty();
    throw sdk::Failure(DRIFTD_UNAVAILABLE, "what answers at this endpoint no longer says which one it is (before " +
                                               judged + "): nothing of it is told until it does");
  }
  [[noreturn]] void refuse(const std::string& identity, const std::string& judged) const {
    throw sdk::Failure(DRIFTD_UNAVAILABLE, other_ + " " + identity + ", before " + judged +
                                               "): nothing of it is told until the agent knows that");
  }

  const std::string other_;
  mutable std::mutex mutex_;
  std::string first_, reported_;  ///< by health: at first, and last
  std::string judged_, refused_;  ///< of the last refresh; of one that was refused. Empty: none
};

}  // namespace driftd::common
