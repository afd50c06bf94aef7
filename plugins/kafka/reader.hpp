// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "kafka/cluster_answers.hpp"
#include "kafka/mapping.hpp"
#include "kafka/scram_hello.hpp"
#include "kafka/visibility.hpp"

namespace driftd::kafka {

/// In the order of reading: the counts of the cluster come from its topics.
inline constexpr std::array<std::string_view, 7> kKinds{"broker", "topic",      "cluster", "acl",
                                                        "group",  "scram_user", "quota"};

/// All records of one kind.
struct Listing {
  Records records;
  bool whole = true;                           ///< false if something may be missing
  std::vector<sdk::Diagnostic> diagnostics{};  ///< what is missing and why; may be set even if `whole`
};

/// Reads kinds through one client. Lives for one call.
class Reader {
 public:
  Reader(sdk::Call& call, const Client& client, const Settings& settings, ScramHellos& hellos)
      : call_(call),
        client_(client),
        settings_(settings),
        hellos_(hellos),
        answers_(call, client),
        visibility_(call, client, settings, answers_) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  /// Lists the kind, as far as it is in scope. Throws sdk::Failure.
  Listing list(std::string_view kind);
  /// Reads the resources with these ids, in scope or not. An id that is gone gets a diagnostic NOT_FOUND.
  Listing read(std::string_view kind, const std::set<std::string>& ids);
  /// Returns the id of the cluster that everything was read from. It asks again which cluster answers, so call it last.
  /// Throws UNAVAILABLE if that has changed meanwhile.
  std::string cluster_id() { return answers_.cluster_id(settings_.call); }
  /// Returns the brokers and topics of this call.
  const Metadata& metadata() { return answers_.metadata(); }
  ScramHellos& hellos() const { return hellos_; }
  /// Returns the health of all topics that we may describe.
  const ReplicaHealth& replica_health() const { return replica_health_; }

 private:
  /// Returns the topics in scope, or those named by `only`, by name. They point into the Metadata answer.
  std::vector<const Topic*> wanted_topics(const std::set<std::string>* only);
  Listing clusters();                                 ///< one record: the cluster itself
  Listing live_brokers();                             ///< and those that hold replicas but do not answer
  Listing topics(const std::set<std::string>* only);  ///< null: all in scope
  void add_topic(const Topic& topic, const Configs& configs, const std::string& id, bool counts,
                 Listing& out);  ///< `counts`: it is part of replica_health()
  Listing bindings();            ///< ACLs; not whole without an authorizer
  Listing groups();              ///< not whole if a broker did not list its own
  Listing scram_users();         ///< with the salts that hellos found
  void settle_missing_salts(const std::set<std::string>& missing, Listing& out) const;
  void settle_missing_topics(const std::set<std::string>& missing, Listing& out);
  /// Says of each id that was not found whether it is gone, or why that is not known. A broker never is: it may only be
  /// stopped.
  void settle_missing(std::string_view kind, const std::set<std::string>& missing, Listing& out) const;

  sdk::Call& call_;
  const Client& client_;
  const Settings& settings_;
  ScramHellos& hellos_;
  ClusterAnswers answers_;
  Visibility visibility_;
  bool counted_ = false;  ///< `replica_health_` is complete
  ReplicaHealth replica_health_;
};

}  // namespace driftd::kafka
