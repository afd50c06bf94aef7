// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace driftd::test {
namespace {

/// Collects faults: the first few as text, and how many there are.
class Faults {
 public:
  void add(const std::string& fault) {
    if (++count_ <= 5) text_ += fault + "; ";
  }
  std::string text() const { return count_ == 0 ? "" : std::to_string(count_) + " faults: " + text_; }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

std::string name_of(const Delivery& one) { return one.subject + "=" + std::to_string(one.value) + " (" + one.id + ")"; }

using Change = std::pair<std::string, int>;

}  // namespace

std::size_t Runs::at(Time time) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), time);
  return next == starts_.begin() ? 0 : static_cast<std::size_t>(next - starts_.begin()) - 1;
}

std::string lost(const Written& written, const Deliveries& got) {
  std::set<Change> arrived;
  for (const auto& one : got) arrived.emplace(one.subject, one.value);
  Faults faults;
  for (const auto& [subject, last] : written) {
    for (int value = 2; value <= last; ++value) {
      if (arrived.count({subject, value}) == 0) faults.add(subject + "=" + std::to_string(value) + " did not arrive");
    }
  }
  return faults.text();
}

std::string out_of_order(const Deliveries& got) {
  struct Last {
    int value = 0;
    std::pair<std::uint64_t, std::uint64_t> stamp;
  };
  std::unordered_set<std::string> known;
  std::unordered_map<std::string, Last> last;
  Faults faults;
  for (const auto& one : got) {
    if (!known.insert(one.id).second) continue;
    Last& before = last[one.subject];
    const std::pair stamp(one.incarnation, one.sequence);
    if (stamp <= before.stamp || (one.value != 0 && one.value <= before.value))
      faults.add(name_of(one) + " came after " + std::to_string(before.value));
    before.stamp = stamp;
    if (one.value != 0) before.value = one.value;
  }
  return faults.text();
}

std::string ambiguous(const Deliveries& got) {
  std::unordered_map<std::string, std::size_t> bytes;
  std::map<Change, std::string> ids;
  Faults faults;
  for (const auto& one : got) {
    if (bytes.try_emplace(one.id, one.bytes).first->second != one.bytes)
      faults.add(name_of(one) + " came with other content");
    if (one.value == 0) continue;
    const auto& id = ids.try_emplace({one.subject, one.value}, one.id).first->second;
    if (id != one.id) faults.add(name_of(one) + " came as " + id + " before");
  }
  return faults.text();
}

std::string holes(const Deliveries& got) {
  std::set<std::uint64_t> incarnations, sequences;
  for (const auto& one : got) {
    if (one.sequence == 0) continue;  // about the agent, with a sequence of its own
    incarnations.insert(one.incarnation);
    sequences.insert(one.sequence);
  }
  Faults faults;
  if (incarnations.size() > 1) faults.add(std::to_string(incarnations.size()) + " incarnations");
  std::uint64_t next = sequences.empty() ? 0 : *sequences.begin();
  for (const auto sequence : sequences) {
    for (; next < sequence; ++next) faults.add("sequence " + std::to_string(next) + " is missing");
    next = sequence + 1;
  }
  return faults.text();
}

std::string different(const Deliveries& a, const Deliveries& b, bool same_encoding) {
  std::map<Change, const Delivery*> first;
  for (const auto& one : a) {
    if (one.value != 0) first.try_emplace({one.subject, one.value}, &one);
  }
  std::set<Change> common;
  Faults faults;
  for (const auto& one : b) {
    if (one.value == 0) continue;
    const auto found = first.find({one.subject, one.value});
    if (found == first.end()) {
      faults.add(name_of(one) + " came to the second receiver only");
      continue;
    }
    common.insert(found->first);
    const Delivery& other = *found->second;
    const bool same = one.id == other.id && one.sequence == other.sequence && one.incarnation == other.incarnation &&
                      (!same_encoding || one.content == other.content);
    if (!same) faults.add(name_of(one) + " differs from " + name_of(other));
  }
  if (common.size() < first.size())
    faults.add(std::to_string(first.size() - common.size()) + " changes came to the first receiver only");
  return faults.text();
}

std::vector<std::size_t> repetitions(const Deliveries& got, std::size_t runs) {
  std::vector<std::size_t> out(runs, 0);
  std::unordered_set<std::string> known;
  for (const auto& one : got) {
    if (!known.insert(one.id).second) ++out.at(one.run);
  }
  return out;
}

std::size_t distinct(const Deliveries& got) {
  std::unordered_set<std::string> ids;
  for (const auto& one : got) ids.insert(one.id);
  return ids.size();
}

}  // namespace driftd::test
