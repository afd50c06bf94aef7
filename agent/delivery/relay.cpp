// SPDX-License-Identifier: Apache-2.0
#include "delivery/relay.hpp"

#include "base/fatal.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>

namespace driftd::delivery {

Relay::Relay(asio::any_io_executor core, core::Outbox& outbox, const Clock& clock, RelaySettings settings)
    : context_(std::make_shared<LaneContext>(
          LaneContext{std::move(core), outbox, clock, std::move(settings), [this] { wake(); }})) {}

Relay::~Relay() {
  context_->wake_all = [] {};  // an append under way outlives the relay by a moment
}

void Relay::add_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink) {
  lanes_[name] = std::make_shared<Lane>(context_, name, std::move(type), std::move(sink));
}

Task<Status> Relay::start() {
  DRIFTD_CO_TRY(const auto known, co_await context_->outbox.sinks());
  const auto& drop = context_->settings.drop_pending;
  for (const auto& name : known) {
    if (lanes_.count(name) != 0) continue;
    const bool may_drop = std::find(drop.begin(), drop.end(), name) != drop.end();
    const Status closed = co_await context_->outbox.close_sink(name, may_drop);
    DRIFTD_CO_CHECK(closed);
  }
  for (const auto& [name, lane] : lanes_) asio::co_spawn(context_->core, lane->run(), fatal);
  co_return Status{};
}

Task<void> Relay::stop() {
  for (const auto& [name, lane] : lanes_) lane->stop();
  asio::steady_timer poll(context_->core);
  for (const auto& [name, lane] : lanes_) {
    while (!lane->stopped()) {
      poll.expires_after(std::chrono::milliseconds(2));
      co_await poll.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }
}

void Relay::wake() {
  for (const auto& [name, lane] : lanes_) lane->ring();
}

std::vector<core::SinkView> Relay::views() const {
  std::vector<core::SinkView> out;
  for (const auto& [name, lane] : lanes_) out.push_back(lane->view());
  return out;
}

Result<std::shared_ptr<Lane>> Relay::lane(const std::string& name) const {
  const auto found = lanes_.find(name);
  if (found != lanes_.end()) return found->second;
  std::string known;
  for (const auto& [other, lane] : lanes_) known += (known.empty() ? "" : ", ") + other;
  return fail(Code::not_found, "no sink '" + name + "'; there are: " + known);
}

Task<Result<std::int64_t>> Relay::replay(core::Control::Replay request) {
  DRIFTD_CO_TRY(const auto found, lane(request.sink));
  co_return co_await found->replay(std::move(request));
}

Task<Result<std::int64_t>> Relay::dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs) {
  DRIFTD_CO_TRY(const auto found, lane(sink));
  co_return co_await found->dead_letter(std::move(verb), std::move(seqs));
}

}  // namespace driftd::delivery
