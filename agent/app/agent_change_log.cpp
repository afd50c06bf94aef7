// SPDX-License-Identifier: Apache-2.0
// The change log of a running agent.
#include "app/agent.hpp"
#include "app/change_log.hpp"
#include "base/log.hpp"
#include "config/places.hpp"

namespace driftd::app {

Status Agent::make_change_log() {
  change_log_.store = store_->change_log();
  if (!config_.change_log.on()) return {};
  auto receiver = make_change_log_receiver(config_, executors_.core.get_executor());
  if (!receiver) {
    const auto at = config::find_position(config_.places, "change_log");
    return fail(Code::invalid,
                config::render(config::ConfigError{config_.file, at, receiver.error().message, {}, {}, {}}));
  }
  change_log_.receiver = std::move(*receiver);
  delivery::ChangeLogNeeds needs;
  needs.core = executors_.core.get_executor();
  needs.store = change_log_.store.get();
  needs.receiver = change_log_.receiver.get();
  needs.clock = &clock_;
  needs.event_stored = [this] { wake_readers(); };
  needs.max_backlog_bytes = config_.change_log.max_backlog_bytes;
  change_log_.runner = std::make_shared<delivery::ChangeLogRunner>(std::move(needs));
  return {};
}

Task<void> Agent::start_change_log() {
  if (change_log_.runner) {
    change_log_.runner->start();
    co_return;
  }
  const auto position = co_await change_log_.store->position();
  if (!position || position->newest <= position->settled) co_return;
  log::room("delivery")
      .warn(
          "{} entries of the change log wait in the store, and change_log is off: they stay there until it is on again",
          position->newest - position->settled);
}

core::ChangeLogView Agent::change_log_view() const {
  return change_log_.runner ? change_log_.runner->view() : core::ChangeLogView{};
}

}  // namespace driftd::app
