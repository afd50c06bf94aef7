// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "kafka/client.hpp"
#include "kafka/mapping.hpp"
#include "kafka/scram_hello.hpp"

namespace driftd::kafka {

/// In the order of reading: the cluster's counts come from its topics.
inline constexpr std::array<std::string_view, 7> kKinds{"broker", "topic",      "cluster", "acl",
                                                        "group",  "scram_user", "quota"};

/// One kind as the cluster shows it now.
struct Listing {
  Records records;
  bool whole = true;                           ///< nothing of it can be missing
  std::vector<sdk::Diagnostic> diagnostics{};  ///< what is missing and why, also of a kind that is whole
};

/// Reads kinds through one client; what several kinds need is asked for once. Lives for one call.
class Reader {
 public:
  Reader(sdk::Call& call, const Client& client, const Settings& settings, ScramHellos& hellos)
      : call_(call),
        client_(client),
        settings_(settings),
        hellos_(hellos) {}
  /// What is in scope. Throws sdk::Failure.
  Listing list(std::string_view kind);
  /// Those with these ids, in scope or not. An id that the cluster says is gone has a diagnostic NOT_FOUND.
  Listing read(std::string_view kind, const std::set<std::string>& ids);
  /// The id of the cluster that everything above was read from; asks once more who answers, so it comes last. Throws
  /// sdk::Failure UNAVAILABLE when that changed meanwhile.
  std::string cluster_id();
  /// Of all topics that we may describe.
  const ReplicaHealth& replica_health() const { return replica_health_; }

 private:
  const Metadata& metadata();
  const Acls& acls();
  const std::vector<Configs>& brokers();
  bool no_authorizer();  ///< a broker says so in its configuration
  std::vector<const Topic*> wanted_topics(const std::set<std::string>* only);
  /// The diagnostic that says why the list of topics may lack some; none: it is whole.
  const std::optional<sdk::Diagnostic>& topics_hidden();
  /// Null: Describe on Cluster is ours.
  std::optional<sdk::Diagnostic> cluster_hidden(std::string_view kind);

  /// Null: that the list of topics holds no __consumer_offsets means that there is none.
  std::optional<sdk::Diagnostic> offsets_hidden();

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
  std::int64_t metadata_sent_ = 0, brokers_sent_ = 0, acls_sent_ = 0;
  std::optional<Metadata> metadata_;
  std::optional<Acls> acls_;
  std::optional<std::vector<Configs>> brokers_;
  bool probed_ = false, counted_ = false;
  std::optional<sdk::Diagnostic> hidden_;
  ReplicaHealth replica_health_;
};

}  // namespace driftd::kafka
