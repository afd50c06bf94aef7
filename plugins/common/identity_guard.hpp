// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::common {

/// Makes sure that a refresh reads the system that the host has accepted: a cluster id, a system_identifier, the
/// lineage of a state. The host asks health for the identity before each refresh, but the endpoint may lead to another
/// system between the two. An empty identity means that the system reports none, which is accepted if it never reported
/// one. Thread-safe.
class IdentityGuard {
 public:
  /// `other` begins the error text about another system: `another cluster answers (cluster id`.
  explicit IdentityGuard(std::string other) : other_(std::move(other)) {}

  /// Records the identity that health has reported to the host.
  void on_health(const std::string& identity) {
    const std::lock_guard lock(mutex_);
    reported_ = identity;
    if (first_.empty()) first_ = identity;
  }

  /// Checks the identity that a refresh has met. Throws UNAVAILABLE the first time it differs from the last one (that
  /// of the cursor, or the first one that health reported). Health then reports it, the host decides whether it is
  /// right, and the next refresh passes.
  /// `of_cursor` is the identity that the refresh's cursor was made for; empty: there is no cursor, or it holds none.
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

  /// Checks an identity outside of a refresh (confirmations, discoveries). Throws UNAVAILABLE if it is not that of the
  /// last refresh.
  void check(const std::string& identity) const {
    const std::lock_guard lock(mutex_);
    const std::string& judged = judged_.empty() ? first_ : judged_;
    if (!is_unknown(identity, judged) && !judged.empty() && judged != identity) refuse(identity, judged);
  }

  /// Returns the identity that was met last, else the first that health reported; used by a health probe that cannot
  /// read it itself.
  /// Empty if neither a refresh nor health has met one.
  std::string newest() const {
    const std::lock_guard lock(mutex_);
    if (!refused_.empty()) return refused_;
    return judged_.empty() ? first_ : judged_;
  }

 private:
  /// Returns true if the system reports no identity and never did. Throws UNAVAILABLE if it did before.
  static bool is_unknown(const std::string& identity, const std::string& judged) {
    if (!identity.empty() || judged.empty()) return identity.empty();
    throw sdk::Failure(DRIFTD_UNAVAILABLE, "the system at this endpoint no longer reports its identity (before " +
                                               judged + "): results are withheld until it does");
  }
  /// Throws UNAVAILABLE, which makes the host ask health for the identity.
  [[noreturn]] void refuse(const std::string& identity, const std::string& judged) const {
    throw sdk::Failure(DRIFTD_UNAVAILABLE,
                       other_ + " " + identity + ", before " + judged +
                           "): results are withheld until the agent has confirmed the new identity");
  }

  const std::string other_;       ///< beginning of the error text
  mutable std::mutex mutex_;      ///< guards the texts below
  std::string first_, reported_;  ///< reported by health: the first and the last one
  std::string judged_, refused_;  ///< that of the last refresh, and the one that was rejected. Empty: none
};

}  // namespace driftd::common
