// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/apply_steps.hpp"
#include "driftd/sdk/extensions.hpp"
#include "kafka/alter_plan.hpp"
#include "kafka/reader.hpp"

namespace driftd::kafka {

/// Puts configurations of one topic, one broker or of all brokers back by one IncrementalAlterConfigs, which Kafka
/// makes whole or not at all. Lives for one call.
class Applier {
 public:
  /// All must outlive it. `keys` are of the instance.
  Applier(sdk::Call& call, const Client& client, const Settings& settings, Reader& reader,
          common::AppliedRequests& keys)
      : call_(call),
        client_(client),
        settings_(settings),
        reader_(reader),
        keys_(keys) {}
  /// Reads the resource as a refresh does. Throws NOT_FOUND if it is gone, INVALID if there is no such kind, or what
  /// reading throws.
  sdk::Record read(const sdk::Identity& id) const;
  /// `now` is what read() returned. Throws CONFLICT if it is not as it was judged, NOT_FOUND if the topic is gone,
  /// INVALID for a request that the host may not make; UNAVAILABLE also if the answer to a change did not come.
  sdk::Applied apply(const sdk::Record& now, const sdk::Apply& request) const;

 private:
  /// Checks everything that can be known before Kafka is asked. Returns the outcome if it is already decided.
  std::optional<sdk::Applied> decided(const sdk::Record& now, const sdk::Apply& request, const AlterPlan& plan) const;
  /// Returns which attribute the broker hides or does not know, with the reason; empty if there is none.
  std::string hidden(const AlterPlan& plan) const;
  /// Sends the request to a broker that may answer it.
  AlterAnswer send(const AlterRequest& request) const;
  AlterAnswer send_to(const std::string& endpoint, const AlterRequest& request, bool& sent) const;
  /// Waits until the broker shows what the controller has accepted. Returns false if it does not within five seconds.
  bool shown(const sdk::Apply& request) const;

  sdk::Call& call_;
  const Client& client_;
  const Settings& settings_;
  Reader& reader_;
  common::AppliedRequests& keys_;
};

}  // namespace driftd::kafka
