// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "controller/change.hpp"
#include "controller/settings.hpp"

namespace driftd::controller {

/// A CloudEvent 1.0 about a change, as the resource-watcher RFC gives it.
struct ChangeEvent {
  std::string id;       ///< unique for this source
  std::string type;     ///< `prismbackend.created`, `.updated`, `.status_updated` or `.deleted`
  std::string source;   ///< `watcher/prismbackend`
  std::string subject;  ///< `<namespace>/<name>`; `<name>` if the kind is not namespaced
  std::chrono::system_clock::time_point time{};
  Change change;
};

/// `type` must be one that is published.
ChangeEvent event_of(const Change& change, std::string id, std::chrono::system_clock::time_point time);

/// The six members of the RFC as a JSON object: resourceUid, apiVersion, kind, changeType, generation and
/// observedGeneration (null if the resource has none).
std::string render_data(const ChangeEvent& event);
/// The whole event in the structured JSON mode of CloudEvents.
std::string render(const ChangeEvent& event);

/// Where a watcher sends its events. It is called on the thread that observes, so it must not block for long.
class EventPublisher {
 public:
  virtual ~EventPublisher() = default;
  virtual Status publish(const ChangeEvent& event) = 0;
};

}  // namespace driftd::controller
