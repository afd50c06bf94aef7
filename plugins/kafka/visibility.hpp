// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kafka/cluster_answers.hpp"

namespace driftd::kafka {

/// Returns the diagnostic DENIED for a kind, which names the `right` that the operator may grant.
sdk::Diagnostic denied(std::string_view kind, const std::string& right, const std::string& text);

/// Finds out what a list may lack because driftd's principal may not see it. Kafka leaves such things out without an
/// error. Lives for one call, on its thread; the references must outlive it. All functions throw sdk::Failure.
class Visibility {
 public:
  Visibility(sdk::Call& call, const Client& client, const Settings& settings, ClusterAnswers& answers)
      : call_(call),
        client_(client),
        settings_(settings),
        answers_(answers) {}

  /// Returns the diagnostic that says why topics may be missing from the list; nullopt: none can be missing.
  const std::optional<sdk::Diagnostic>& topics_hidden();
  /// Returns nullopt if we have Describe on Cluster.
  std::optional<sdk::Diagnostic> cluster_hidden(std::string_view kind);
  /// Returns nullopt if a list of topics without __consumer_offsets proves that there is none.
  std::optional<sdk::Diagnostic> offsets_hidden();

 private:
  sdk::Call& call_;
  const Client& client_;
  const Settings& settings_;
  ClusterAnswers& answers_;
  bool probed_ = false;                    ///< `hidden_` is known
  std::optional<sdk::Diagnostic> hidden_;  ///< result of topics_hidden()
};

}  // namespace driftd::kafka
