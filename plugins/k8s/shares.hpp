// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "k8s/prism.hpp"

namespace driftd::k8s {

/// How much of what defines backends each namespace may have, so that who writes in one takes no other's room. A
/// namespace with more is passed over whole, as half of it would look like a change: nothing of it is read, nothing of
/// it is gone. Where all together are too much, the largest is. Not thread-safe.
class Shares {
 public:
  struct Limits {
    /// of one namespace; bytes: as they are in memory
    std::size_t objects = 1'000, definitions = 250, bytes = 8u << 20;
    std::size_t all_objects = 10'000, all_bytes = 64u << 20;
  };

  Shares() = default;
  explicit Shares(Limits limits) : limits_(limits) {}

  /// Puts a listed or watched object into `objects`, unless its namespace is passed over: then it is not there.
  void put(Objects& objects, const Ref& ref, const nlohmann::json& object);
  void remove(Objects& objects, const Ref& ref);
  /// Puts what a definition in `space` points to, which counts there and defines nothing. False: there is no room for
  /// it.
  bool put_for(Objects& objects, const std::string& space, const Ref& ref, nlohmann::json object);
  /// Passes over who defines too many, or uses so few objects so often that their registrations would be too much.
  /// `faults`: of definitions() of these objects.
  void count(Objects& objects, const Definitions& definitions, const std::vector<sdk::Diagnostic>& faults);

  bool passes_over(const std::string& space) const { return passed_.contains(space); }
  const std::map<std::string, std::string>& passed_over() const { return passed_; }  ///< namespace → why
  /// That they are, of each.
  void tell(std::vector<sdk::Diagnostic>& diagnostics) const;

 private:
  struct Used {
    std::map<Ref, std::size_t> objects;  ///< its own and what its definitions point to → bytes
    std::size_t bytes = 0;
  };
  void pass_over(Objects& objects, const std::string& space, std::string why);
  const std::string& payer(const Ref& ref) const;
  void charge(const std::string& space, const Ref& ref, std::size_t bytes);
  void release(const std::string& space, const Ref& ref);
  void make_room(Objects& objects);

  Limits limits_;
  std::map<std::string, Used> used_;
  std::map<Ref, std::string> held_for_;  ///< what is there because definitions of that namespace point to it
  std::map<std::string, std::string> passed_;
  std::size_t objects_ = 0, bytes_ = 0;
};

/// Of many faults of one namespace one diagnostic about all of it: there is room for all namespaces then.
std::vector<sdk::Diagnostic> fold_by_namespace(const std::vector<sdk::Diagnostic>& diagnostics);

}  // namespace driftd::k8s
