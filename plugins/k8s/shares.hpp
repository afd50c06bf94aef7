// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "k8s/prism.hpp"

namespace driftd::k8s {

/// Limits how much each namespace may contribute to the objects that define backends, so that one tenant cannot use up
/// the room of others. A namespace above its limit is skipped completely, because half of it would look like a change:
/// nothing of it is read, and nothing of it counts as gone. If all namespaces together are too large, the largest one
/// is skipped. Not thread-safe.
class Shares {
 public:
  struct Limits {
    /// limits of one namespace; bytes are those in memory
    std::size_t objects = 1'000, definitions = 250, bytes = 8u << 20;
    std::size_t all_objects = 10'000, all_bytes = 64u << 20;
  };

  Shares() = default;
  explicit Shares(Limits limits) : limits_(limits) {}

  /// Adds a listed or watched object to `objects`, unless its namespace is skipped; then it is left out.
  void put(Objects& objects, const Ref& ref, const nlohmann::json& object);
  /// Removes an object that was deleted. Nothing happens if it is not there.
  void remove(Objects& objects, const Ref& ref);
  /// Adds an object that a definition in `space` refers to; it counts for that namespace and defines nothing. Returns
  /// false if there is no room.
  bool put_for(Objects& objects, const std::string& space, const Ref& ref, nlohmann::json object);
  /// Skips namespaces that define too many backends, or that refer to few objects so often that their registrations
  /// would be too large. `faults` are the diagnostics of definitions() of these objects.
  void count(Objects& objects, const Definitions& definitions, const std::vector<sdk::Diagnostic>& faults);

  bool passes_over(const std::string& space) const { return passed_.contains(space); }  ///< this namespace is skipped
  const std::map<std::string, std::string>& passed_over() const { return passed_; }  ///< skipped namespace → reason
  /// Reports each skipped namespace.
  void tell(std::vector<sdk::Diagnostic>& diagnostics) const;

 private:
  struct Used {
    std::map<Ref, std::size_t> objects;  ///< own and referenced objects → bytes
    std::size_t bytes = 0;
  };
  /// Skips a namespace from now on and drops what it has; only the first `why` is kept.
  void pass_over(Objects& objects, const std::string& space, std::string why);
  const std::string& payer(const Ref& ref) const;                            ///< namespace that the object counts for
  void charge(const std::string& space, const Ref& ref, std::size_t bytes);  ///< counts an object for a namespace
  void release(const std::string& space, const Ref& ref);                    ///< takes it off again
  void make_room(Objects& objects);  ///< skips the largest namespaces until the rest fits

  Limits limits_;
  std::map<std::string, Used> used_;     ///< by namespace
  std::map<Ref, std::string> held_for_;  ///< objects that are kept only because definitions of that namespace refer to
                                         ///< them
  std::map<std::string, std::string> passed_;  ///< skipped namespace → reason
  std::size_t objects_ = 0, bytes_ = 0;        ///< of all namespaces together
};

/// Merges many faults of one namespace into one diagnostic, so that all namespaces fit into the report.
std::vector<sdk::Diagnostic> fold_by_namespace(const std::vector<sdk::Diagnostic>& diagnostics);

}  // namespace driftd::k8s
