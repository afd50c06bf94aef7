// SPDX-License-Identifier: Apache-2.0
// The test's own books: what was changed, and what a receiver got. Nothing in here asks the agent.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// One event as it arrived at a receiver; an event that arrives twice is two of these.
struct Delivery {
  std::string id, subject;
  std::uint64_t incarnation = 0, sequence = 0;
  int value = 0;            ///< the value that a change of the writer made; 0: another event
  std::size_t bytes = 0;    ///< hash of everything that arrived, headers too
  std::size_t content = 0;  ///< hash of the decoded event, for comparison with receivers of the same encoding
  std::size_t run = 0;      ///< which run of the agent sent it, from 0
};
using Deliveries = std::vector<Delivery>;

/// Subject → its last value. Values begin with 1, and each one from 2 on was a change that must arrive.
using Written = std::map<std::string, int>;

/// When each run of the agent began. Nothing of a killed run arrives later, except for what a socket still holds.
class Runs {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void begin() { starts_.push_back(std::chrono::steady_clock::now()); }
  std::size_t at(Time time) const;
  std::size_t count() const { return starts_.size(); }

 private:
  std::vector<Time> starts_;
};

/// These return the first few faults as text, empty if there is none.
std::string lost(const Written& written, const Deliveries& got);
/// New events of a subject must arrive in the order of its values and of (incarnation, sequence). Repetitions of known
/// ids do not count, for a consumer skips them.
std::string out_of_order(const Deliveries& got);
/// An id must always come with the same bytes, and a change under one id only.
std::string ambiguous(const Deliveries& got);
/// Sequence numbers of the backend that are missing between the first and the last that arrived, or a second
/// incarnation.
std::string holes(const Deliveries& got);
/// Both receivers must have got each change of the writer as the same event; with `same_encoding`, to the last field.
std::string different(const Deliveries& a, const Deliveries& b, bool same_encoding);

/// Returns for each run how many events it sent that had arrived before.
std::vector<std::size_t> repetitions(const Deliveries& got, std::size_t runs);
std::size_t distinct(const Deliveries& got);

}  // namespace driftd::test
