// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/sink.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "check/pages.hpp"
#include "check/sink/plugin.hpp"

namespace driftd::check {

/// One event as a sink gets it.
struct Event {
  std::string id, source, type, subject, topic, key, content_type, body;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::uint64_t sequence = 0;
  std::uint32_t flags = 0;
};
using Batch = std::vector<Event>;

/// Places a batch among the inputs of a call. [any thread]
const driftd_batch* put_batch(Inputs& inputs, const Batch& batch);

/// Makes events like those of the agent, in the first body form of `bodies` that the agent can produce. Every id is
/// prefix(), a minus and kDigits digits, so that the ids can be found in what a receiver got. Events of one key have
/// rising sequence numbers. Throws CheckNotMade if the sink asks for no body form that the agent can produce.
class EventMaker {
 public:
  static constexpr std::size_t kDigits = 6;
  /// The same seed gives the same prefix. `first` is the number of the first id.
  EventMaker(const SinkInfo& info, std::uint64_t seed, std::size_t first = 0);
  static std::string prefix_of(std::uint64_t seed);
  /// Returns the next event of the key with this number. `text` is the value of one attribute of its data.
  Event next(std::size_t key, const std::string& text = "on");
  /// Returns `count` events of the keys from `first_key` on.
  Batch batch(std::size_t count, std::size_t first_key = 0);
  /// Returns as many events as a batch may have, at most `limit`.
  Batch full_batch(std::size_t limit = 256);
  const std::string& prefix() const { return prefix_; }
  bool makes_json() const { return json_; }

 private:
  std::string body(const Event& event, const std::string& text) const;
  std::string prefix_;
  bool json_ = true;
  std::size_t batch_events_ = 1, made_;
  std::map<std::size_t, std::uint64_t> sequences_;
};

}  // namespace driftd::check
