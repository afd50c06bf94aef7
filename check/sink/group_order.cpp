// SPDX-License-Identifier: Apache-2.0
// Group order: what a receiver sees of one key is in commit order.
#include <fmt/format.h>

#include <map>

#include "check/progress.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kTries = 10;

/// Delivers events of the same keys one after the other, as the host does: the next one of a key comes when the one
/// before it is settled and has arrived.
class Sequence {
 public:
  explicit Sequence(Stand& stand)
      : stand_(stand),
        instance_(SinkInstance::open_plain(stand.subject())),
        keys_(stand.events().full_batch(4).size()) {}

  void deliver(int rounds) {
    for (int i = 0; i < rounds; ++i) retry_until_delivered(next(), 0);
  }

  /// Delivers one batch while each connection is reset after its first byte, then again until it succeeds.
  void deliver_through_resets(int rounds) {
    for (int i = 0; i < rounds; ++i) retry_until_delivered(next(), 2);
  }

  /// Throws RuleBroken if an event arrived after a later one of its key.
  void expect_order() {
    std::map<std::size_t, std::size_t> last;  // by key
    for (const auto& arrival : stand_.receiver().arrivals()) {
      const auto key = key_of_.find(arrival.event);
      if (key == key_of_.end()) continue;
      auto& newest = last[key->second];
      if (arrival.event < newest) {
        throw RuleBroken(fmt::format(
            "event {} of a key arrived after event {} of the same key: expected commit order; send nothing again that "
            "was settled, and nothing after deliver returned: the host tries again, in order",
            arrival.event, newest));
      }
      newest = arrival.event;
    }
  }

 private:
  Batch next() {
    Batch out = stand_.events().batch(keys_);
    for (std::size_t i = 0; i < out.size(); ++i) key_of_[number_of(out[i])] = i;
    return out;
  }

  void retry_until_delivered(Batch batch, int resets) {
    CallFaults brief;
    brief.time = seconds(5);
    for (int tries = 0; tries < kTries; ++tries) {
      stand_.receiver().set_reset_after(tries < resets ? 1 : 0);
      const CallTrace trace = instance_->deliver(batch, brief);
      std::vector<std::size_t> delivered;
      Batch left;
      for (std::uint32_t i = 0; i < batch.size(); ++i) {
        if (outcome_of(trace, i) == DRIFTD_OUTCOME_DELIVERED) {
          delivered.push_back(number_of(batch[i]));
        } else {
          left.push_back(batch[i]);
        }
      }
      if (tries >= resets) (void)stand_.receiver().await(delivered, seconds(2));  // verdicts.arrives judges the rest
      if (left.empty()) return;
      batch = std::move(left);
    }
    throw CheckNotMade(
        fmt::format("{} events are not delivered after {} tries; see verdicts.works", batch.size(), kTries));
  }

  Stand& stand_;
  std::unique_ptr<SinkInstance> instance_;
  const std::size_t keys_;
  std::map<std::size_t, std::size_t> key_of_;  ///< by event
};

void per_key(const Subject& subject) {
  Stand stand(subject, "order.per_key");
  stand.expect_watched();
  stand.expect_works_at_all();
  Sequence sequence(stand);
  sequence.deliver(10);
  for (int i = 0; i < 3; ++i) {
    sequence.deliver_through_resets(1);
    sequence.deliver(4);
  }
  if (stand.receiver().arrivals().empty())
    throw CheckNotMade("no event id can be found in what the receiver got; see verdicts.arrives");
  sequence.expect_order();
}

constexpr Check kOrderChecks[] = {
    {"order.per_key", Level::must, "events of one key arrive in commit order, also after connections were reset",
     seconds(150), &per_key},
};

}  // namespace

std::span<const Check> order_checks() { return kOrderChecks; }

}  // namespace driftd::check::sink
