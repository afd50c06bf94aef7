// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace driftd::sinks {

/// Finds the event that ends the plugin's worker. Events that were under way when a worker ended are suspects and are
/// sent alone from then on. One that ends a worker three times while it is alone, with other events delivered in
/// between, is the cause: without that, the plugin or its endpoint is. Core thread.
class Suspects {
 public:
  bool contains(const std::string& id) const { return by_id_.contains(id); }
  /// A worker ended while it had this event. Returns true if the event is found to be the cause.
  bool worker_lost(const std::string& id, bool alone);
  void settled(const std::string& id) { by_id_.erase(id); }  ///< by a verdict of the plugin, whatever it is
  void delivered() { ++successes_; }                         ///< some event was delivered
  std::size_t size() const { return by_id_.size(); }

 private:
  struct Suspect {
    int lost_alone = 0, proofs = 0;  ///< proofs: losses with something delivered since the one before
    std::uint64_t successes = 0;     ///< value of successes_ at the last loss
  };
  std::map<std::string, Suspect> by_id_;  ///< 10,000 at most
  std::uint64_t successes_ = 0;
};

}  // namespace driftd::sinks
