// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "k8s/prism.hpp"

namespace driftd::k8s {

/// Returns true for a valid object name: a DNS subdomain of at most 253 bytes. Others are not requested, because "..",
/// "a%b" or a megabyte would make another request than was meant.
bool is_object_name(const std::string& name);

/// Reason why an object is missing. An empty text means that it does not exist, which is not a fault.
struct Absence {
  driftd_status code = DRIFTD_OK;
  std::string text, right;  ///< `right` is what DENIED lacks
};

/// Remembers the answers about objects that definitions refer to, and limits the number of requests for them: whoever
/// may write a PrismBackend decides how many there are. Not thread-safe.
class References {
 public:
  /// maximum requests: in total, and for the definitions of one namespace; those of the cluster have the first only
  static constexpr std::size_t kMost = 512, kMaxOfSpace = 64;
  using Clock = std::chrono::steady_clock;

  /// Returns what is known of `ref`, which a definition in `space` refers to. Returns nullopt if it must be requested;
  /// that request is counted.
  std::optional<Absence> known(const Ref& ref, const std::string& space);
  /// Returns true if an answer about `ref` is stored.
  bool is_noted(const Ref& ref) const { return absent_.contains(ref); }
  /// Stores the answer to a request that known() asked for.
  void note(const Ref& ref, Absence absence) { absent_[ref] = std::move(absence); }
  /// Forgets everything after one minute: a watch lives longer than these answers.
  void age(Clock::time_point now = Clock::now());

 private:
  std::map<Ref, Absence> absent_;             ///< objects that were asked for in vain
  std::map<std::string, std::size_t> asked_;  ///< by the namespace of the definition
  std::size_t all_ = 0;                       ///< requests in total
  std::optional<Clock::time_point> since_;    ///< when age() last forgot everything
};

}  // namespace driftd::k8s
