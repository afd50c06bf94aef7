// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "terraform/cursor.hpp"
#include "terraform/declare.hpp"
#include "terraform/discover.hpp"
#include "terraform/mapping.hpp"
#include "terraform/source.hpp"

namespace driftd::terraform {

inline constexpr const char* kKinds[] = {"state", "instance", "output", kRegistration};

/// Checks a fetched state and determines its history since `before`. Throws like read_head().
Reading read_fetched(const Fetched& fetched, const Cursor& before);

/// Emits a state during one refresh. Lives on the stack of the call.
class StateEmitter final : public StateVisitor {
 public:
  /// `before`: backends whose registrations were emitted by earlier refreshes.
  StateEmitter(sdk::Call& call, const Settings& settings, const Reading& reading, const sdk::Refresh& request,
               std::set<std::string> before)
      : call_(call),
        settings_(settings),
        reading_(reading),
        request_(request),
        finder_(reading, settings),
        before_(std::move(before)) {}
  /// Emits every record and the COMPLETE marks. Returns false if the host asks to stop; then nothing is complete.
  bool run(const Spool& state);
  /// Returns the backends of the state; call after run().
  Finder& found() { return finder_; }
  /// Returns the backends whose registrations were emitted and may still exist; call after run().
  std::set<std::string> reported_backends() const;

  bool instance(const Instance& instance) override;
  bool output(const std::string& name, const nlohmann::json& output) override;

 private:
  bool emit(const sdk::Record& record);              ///< false: the host asks to stop
  bool emit_registration(const Instance& instance);  ///< if the instance defines a backend
  /// The `include` of the settings does not leave out a registration, only `exclude` does.
  bool wants_registrations() const {
    return request_.wants(kRegistration) && settings_.registration_scope.wants_kind(kRegistration);
  }
  void complete_registrations();               ///< COMPLETE for each backend, with its count
  bool declare_all(const Instance& instance);  ///< what the instance declares by each rule that matches
  /// Returns true if the request and the settings want this kind.
  bool wants(const std::string& kind) const { return request_.wants(kind) && settings_.scope.wants_kind(kind); }
  void complete();           ///< COMPLETE for each kind of this backend
  void complete_declared();  ///< COMPLETE for each kind that a rule can declare

  sdk::Call& call_;
  const Settings& settings_;
  const Reading& reading_;
  const sdk::Refresh& request_;
  bool whole_ = true;                                            ///< the host has not asked to stop
  std::map<std::string, std::uint64_t> counts_;                  ///< records by kind
  using Id = std::tuple<std::string, std::string, std::string>;  // backend, kind, id
  std::set<Id> declared_;                                        ///< each is emitted once
  std::set<std::pair<std::string, std::string>> reported_;       // backend and reason; each is reported once
  Finder finder_;
  std::set<std::string> before_;  ///< backends whose registrations earlier refreshes emitted
};

/// Looks up some identities in a state. Lives on the stack of the call.
class Lookup final : public StateVisitor {
 public:
  Lookup(sdk::Call& call, const Settings& settings, const Reading& reading, std::span<const sdk::Identity> ids);
  /// Emits those that exist. Throws UNSUPPORTED if the state is encrypted.
  void run(const Spool& state);
  /// Returns the others, which the state does not hold.
  std::vector<const sdk::Identity*> missing() const;

  bool instance(const Instance& instance) override;
  bool output(const std::string& name, const nlohmann::json& output) override;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // backend, kind, id
  bool found(const Key& key);  ///< true if this identity was still wanted; it is not any more

  sdk::Call& call_;
  const Settings& settings_;
  const Reading& reading_;
  std::map<Key, const sdk::Identity*> wanted_;  ///< not found yet
  bool declared_ = false;                       // one of them belongs to another backend
  bool registrations_ = false;                  // one of them is a registration
  Finder finder_;
};

}  // namespace driftd::terraform
