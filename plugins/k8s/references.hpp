// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "k8s/prism.hpp"

namespace driftd::k8s {

/// A name that an object of the API may have: a DNS subdomain of at most 253 bytes. Others are not asked for: "..",
/// "a%b" or a megabyte would be another request than was meant.
bool is_object_name(const std::string& name);

/// Why an object is not there. Without a text it does not exist, which is no fault.
struct Absence {
  driftd_status code = DRIFTD_OK;
  std::string text, right;
};

/// What definitions point to is asked for one by one, and whoever may write a PrismBackend says how much that is: this
/// knows what was answered of what, and how much may still be asked. Not thread-safe.
class References {
 public:
  /// requests, in all and for the definitions of a namespace
  static constexpr std::size_t kMost = 512, kMostOfSpace = 64;
  using Clock = std::chrono::steady_clock;

  /// What is known of `ref`, to which a definition in `space` points. Nothing: it is to be asked for, which is counted.
  std::optional<Absence> known(const Ref& ref, const std::string& space);
  void note(const Ref& ref, Absence absence) { absent_[ref] = std::move(absence); }
  /// After a minute all of it is forgotten: a watch lives longer than its answers.
  void age(Clock::time_point now = Clock::now());

 private:
  std::map<Ref, Absence> absent_;
  std::map<std::string, std::size_t> asked_;  ///< by the namespace of the definition
  std::size_t all_ = 0;
  std::optional<Clock::time_point> since_;
};

}  // namespace driftd::k8s
