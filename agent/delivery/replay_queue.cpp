// SPDX-License-Identifier: Apache-2.0
#include "delivery/replay_queue.hpp"

#include <sstream>

namespace driftd::delivery {
namespace {

using Left = ReplayQueue::Left;

/// Reads `NEXT SEQ SEQ …`. Empty if the text is anything else: then all events of the order are sent.
std::optional<Left> parse_left(const std::string& text) {
  std::istringstream in(text);
  Left out;
  if (!(in >> out.next)) return std::nullopt;
  for (std::int64_t seq = 0; in >> seq;) out.before.insert(seq);
  if (!in.eof()) return std::nullopt;
  return out;
}

std::string render(const Left& left) {
  std::string out = std::to_string(left.next);
  for (const auto seq : left.before) out += " " + std::to_string(seq);
  return out;
}

}  // namespace

void ReplayQueue::restore(const std::map<std::string, std::string>& notes) {
  const auto found = notes.find(kNote);
  if (found == notes.end() || active()) return;
  Order order;
  std::istringstream in(found->second);
  if (!(in >> order.from >> order.to >> order.from_ns >> order.rate)) return;
  in.get();  // skips the space before the key, which may contain spaces itself
  std::getline(in, order.key, '\0');
  std::string left;
  std::getline(in, left);
  order_ = std::move(order);
  left_ = parse_left(left);
}

void ReplayQueue::begin(Order order, std::vector<std::int64_t> seqs) {
  cancel();
  order_ = std::move(order);
  seqs_ = std::move(seqs);
  planned_ = true;
}

void ReplayQueue::cancel() {
  ReplayQueue next;
  next.orders_ = orders_ + 1;
  next.keys_ = std::move(keys_);
  next.flying_ = std::move(flying_);
  next.flying_bytes_ = flying_bytes_;
  *this = std::move(next);
}

void ReplayQueue::resume(std::vector<std::int64_t> seqs) {
  if (left_)
    std::erase_if(seqs, [this](std::int64_t seq) { return seq < left_->next && left_->before.count(seq) == 0; });
  begin(Order(*order_), std::move(seqs));
}

std::optional<Left> ReplayQueue::left() const {
  if (!planned_) return left_;
  Left out{has_unfetched() ? seqs_[at_] : order_->to + 1, flying_};
  for (const auto& item : ready_) out.before.insert(item.event.stamp.seq);
  return out;
}

/// What follows the byte 0 is not read by versions that do not know it: they begin again at the first event that is
/// left.
void ReplayQueue::note(std::map<std::string, std::string>& notes) const {
  if (!order_) {
    notes.erase(kNote);
    return;
  }
  const auto rest = left();
  std::int64_t from = order_->from;
  bool some_sent = rest.has_value();
  if (planned_) {
    from = rest->before.empty() ? rest->next : *rest->before.begin();
    const auto end = seqs_.begin() + static_cast<std::ptrdiff_t>(at_);
    some_sent = std::distance(std::lower_bound(seqs_.begin(), end, from), end) != std::ssize(rest->before);
  }
  std::string note = std::to_string(from) + " " + std::to_string(order_->to) + " " + std::to_string(order_->from_ns) +
                     " " + std::to_string(order_->rate) + " " + order_->key;
  if (some_sent) note += '\0' + render(*rest);
  notes[kNote] = std::move(note);
}

std::vector<std::int64_t> ReplayQueue::unfetched(std::size_t max) {
  const auto count = std::min(max, seqs_.size() - at_);
  const auto first = seqs_.begin() + static_cast<std::ptrdiff_t>(at_);
  at_ += count;
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

void ReplayQueue::fetched(const std::vector<std::int64_t>& asked, std::vector<core::StoredEvent> events) {
  missing_ += static_cast<std::int64_t>(asked.size() - events.size());
  for (auto& event : events) {
    event.replay = true;
    ready_.push_back({std::move(event), 0, {}, orders_});
  }
}

std::size_t ReplayQueue::bytes() const {
  std::size_t out = flying_bytes_;
  for (const auto& item : ready_) out += item.event.payload.size();
  return out;
}

ReplayQueue::Item ReplayQueue::taken(Place item, Time now) {
  Item out = *item;
  ready_.erase(item);
  keys_.insert(out.event.key);
  flying_.insert(out.event.stamp.seq);
  flying_bytes_ += out.event.payload.size();
  if (order_->rate > 0) next_ = now + std::chrono::microseconds(1'000'000 / order_->rate);
  return out;
}

void ReplayQueue::landed(const Item& item) {
  keys_.erase(item.event.key);
  if (flying_.erase(item.event.stamp.seq) != 0) flying_bytes_ -= item.event.payload.size();
}

void ReplayQueue::done(const Item& item, bool delivered) {
  landed(item);
  if (item.order == orders_) ++(delivered ? sent_ : refused_);
}

void ReplayQueue::requeue(Item item, Time due) {
  landed(item);
  if (item.order != orders_) return;
  item.due = due;
  ready_.push_front(std::move(item));  // keeps the order: no event of its key was sent meanwhile
}

std::string ReplayQueue::summary() const {
  std::string out = std::to_string(sent_) + " events were sent again";
  if (refused_ != 0) out += ", " + std::to_string(refused_) + " were refused";
  if (missing_ != 0) out += ", " + std::to_string(missing_) + " are no longer in the store";
  return out;
}

}  // namespace driftd::delivery
