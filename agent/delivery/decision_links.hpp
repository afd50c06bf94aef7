// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/notify_settings.hpp"
#include "core/ports/links.hpp"

namespace driftd::delivery {

/// Makes the links of notifications. Each has a random token, of which the store keeps the hash. Core thread. Store and
/// clock must outlive it.
class DecisionLinks {
 public:
  DecisionLinks(core::LinkStore& store, const Clock& clock, core::LinkSettings settings);

  /// A drift as a message shows it.
  struct Shown {
    std::string id, digest;  ///< the beginning of the binding() of its value
    bool approvable = true;
  };
  struct Link {
    std::string action, url;
  };
  using Links = std::vector<std::vector<Link>>;  ///< of each drift, in order
  /// Returns the links of a notification to a sink, which are in the store by then. Each further attempt to send the
  /// same message gets the same links, until 64 others were asked for.
  Task<Result<Links>> make(std::string event_id, std::string sink, std::vector<Shown> drifts);

 private:
  void remember(const std::string& key, const Links& links);

  core::LinkStore& store_;
  const Clock& clock_;
  const core::LinkSettings settings_;
  std::map<std::string, Links> made_;  ///< by message and sink
  std::deque<std::string> order_;      ///< keys of made_, oldest first
};

}  // namespace driftd::delivery
