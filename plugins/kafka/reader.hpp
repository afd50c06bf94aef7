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
  /// Returns the health of all topics that we may describe.
  const ReplicaHealth& replica_health() const { return replica_health_; }

 private:
  std::vector<const Topic*> wanted_topics(const std::set<std::string>* only);
  Listing clusters();
  Listing live_brokers();
  Listing topics(const std::set<std::string>* only);
  void add_topic(const Topic& topic, const Configs& configs, const std::string& id, bool counts, Listing& out);
  Listing bindings();
  Listing groups();
  Listing scram_users();
  void settle_missing_salts(const std::set<std::string>& missing, Listing& out) const;
  void settle_missing_topics(const std::set<std::string>& missing, Listing& out);
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
