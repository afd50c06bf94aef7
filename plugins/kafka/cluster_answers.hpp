// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"

namespace driftd::kafka {

/// The answers of the cluster that several kinds need. Each is requested once, when it is first needed. Lives for one
/// call, on its thread; the references must outlive it. Every request throws sdk::Failure.
class ClusterAnswers {
 public:
  ClusterAnswers(sdk::Call& call, const Client& client) : call_(call), client_(client) {}

  const Metadata& metadata();
  /// Returns the ACLs; the outcome is OK, DENIED or UNSUPPORTED. `open` is also set if a broker's configuration shows
  /// that there is no authorizer.
  const Acls& acls();
  /// Returns the configuration of each live broker, in the order of their ids. A broker that does not answer has the
  /// outcome UNAVAILABLE.
  const std::vector<Configs>& brokers();
  /// Return when the request was sent, in nanoseconds of the call's clock; 0 before that.
  std::int64_t metadata_sent() const { return metadata_sent_; }
  std::int64_t acls_sent() const { return acls_sent_; }
  /// Returns the id of the cluster that answered. It asks again which cluster answers, for up to `timeout`, so call it
  /// last. Throws UNAVAILABLE if that has changed meanwhile.
  std::string cluster_id(std::chrono::milliseconds timeout);

 private:
  bool no_authorizer();  ///< according to a broker's configuration

  sdk::Call& call_;
  const Client& client_;
  std::int64_t metadata_sent_ = 0, acls_sent_ = 0;  ///< by the call's clock, nanoseconds
  std::optional<Metadata> metadata_;                ///< empty: not requested yet
  std::optional<Acls> acls_;
  std::optional<std::vector<Configs>> brokers_;
};

}  // namespace driftd::kafka
