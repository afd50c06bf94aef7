// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <string>

namespace driftd::common {

/// Idempotency keys of the last changes that an instance made. The host never runs two applies of one instance at once,
/// so there is no lock. It covers a key that comes again although somebody has set the old value again meanwhile; after
/// a restart of the worker only the values themselves show whether a change was made.
class AppliedKeys {
 public:
  bool contains(const std::string& key) const { return std::find(keys_.begin(), keys_.end(), key) != keys_.end(); }
  void add(const std::string& key) {
    if (keys_.size() == kMax) keys_.pop_front();
    keys_.push_back(key);
  }

 private:
  static constexpr std::size_t kMax = 1000;
  std::deque<std::string> keys_;
};

}  // namespace driftd::common
