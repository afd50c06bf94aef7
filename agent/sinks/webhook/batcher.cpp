// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/batcher.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace driftd::sinks {
namespace {

/// Events of one refused batch that fail alone, with no success in between, before the others are left for later: the
/// endpoint fails, and to send it all of them would be an attack. It is as many as open the circuit.
constexpr int kMaxFailures = 3;
constexpr std::size_t kMaxAlone = 10'000;

bool delivered(const HttpAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

/// Returns true if the answer says the same about each event of a batch.
bool applies_to_each(const HttpAnswer& answer) {
  return delivered(answer) || answer.status == 410 || (answer.status == 0 && answer.about_endpoint);
}

}  // namespace

struct Batcher::Group {
  int failures = 0;  ///< in a row
  std::size_t events = 0;
};

Batcher::Batcher(WebhookBatch bounds, std::size_t max_requests, asio::any_io_executor core, Post post)
    : bounds_(bounds),
      max_requests_(max_requests),
      core_(std::move(core)),
      post_(std::move(post)) {}

void Batcher::add(BatchPart part, Answered answered) {
  waiting_.push_back({std::move(part), std::move(answered), nullptr});
  send_soon();
}

/// Later, because the runner of the sink gives it one event after the other in the same turn of the core thread.
void Batcher::send_soon() {
  if (std::exchange(woken_, true)) return;
  asio::post(core_, [self = shared_from_this()] {
    self->woken_ = false;
    self->send_waiting();
  });
}

void Batcher::send_waiting() {
  while (requests_ < max_requests_ && !(waiting_.empty() && apart_.empty())) send(take());
}

/// Returns what the next request carries. Needs an item that waits.
Batcher::Items Batcher::take() {
  Items out;
  auto& queue = apart_.empty() ? waiting_ : apart_;
  std::size_t bytes = 2;
  while (!queue.empty() && out.size() < bounds_.events) {
    Item& next = queue.front();
    const bool alone = next.group != nullptr || alone_.count(next.part.id) != 0;
    bytes += bytes_in_batch(next.part);
    if (!out.empty() && (alone || bytes > bounds_.bytes)) break;
    out.push_back(std::move(next));
    queue.pop_front();
    if (alone) break;
  }
  return out;
}

void Batcher::send(Items items) {
  ++requests_;
  std::vector<BatchPart> parts;
  for (const auto& item : items) parts.push_back(item.part);
  auto shared = std::make_shared<Items>(std::move(items));
  post_(batch_call(parts), [self = shared_from_this(), shared](HttpAnswer answer) {
    --self->requests_;
    self->take_answer(std::move(*shared), std::move(answer));
    self->send_soon();
  });
}

void Batcher::take_answer(Items items, HttpAnswer answer) {
  if (items.size() > 1 && !applies_to_each(answer)) return take_apart(std::move(items), answer);
  const auto group = items.front().group;
  for (auto& item : items) item.answered({answer, 1});
  if (group == nullptr) return;
  group->failures = delivered(answer) ? 0 : group->failures + 1;
  if (group->failures >= kMaxFailures) give_up(group, answer);
}

/// If the receiver asks for a pause, the events are sent alone after it, else at once.
void Batcher::take_apart(Items items, const HttpAnswer& answer) {
  const auto group = std::make_shared<Group>();
  group->events = items.size();
  for (auto& item : items) {
    remember(item.part.id);
    if (answer.retry_after_ms > 0) {
      item.answered({answer, group->events});
      continue;
    }
    item.group = group;
    apart_.push_back(std::move(item));
  }
}

/// Leaves the events of the group that were not sent alone yet to the sink's runner.
void Batcher::give_up(const std::shared_ptr<Group>& group, const HttpAnswer& answer) {
  std::deque<Item> others;
  Items left;
  for (auto& item : apart_) {
    if (item.group == group) {
      left.push_back(std::move(item));
    } else {
      others.push_back(std::move(item));
    }
  }
  apart_ = std::move(others);
  const std::size_t shared_by = applies_to_each(answer) ? 1 : group->events;
  for (auto& item : left) item.answered({answer, shared_by});
}

void Batcher::remember(const std::string& id) {
  if (alone_.size() >= kMaxAlone) alone_.erase(alone_.begin());  // its next batch is refused, and it is known again
  alone_.insert(id);
}

}  // namespace driftd::sinks
