// SPDX-License-Identifier: Apache-2.0
// What the agent does every few seconds beside its work: retention, the limits of the store, audit lines that are due.
#include <boost/asio/as_tuple.hpp>

#include "app/agent.hpp"
#include "base/log.hpp"
#include "delivery/backpressure.hpp"

namespace driftd::app {
namespace {

constexpr std::chrono::seconds kMaintenanceEvery{5};
constexpr int kPruneEvery = 120;      // rounds of maintenance: ten minutes
constexpr int kCheckStoreAfter = 12;  // a minute: an agent that is started again and again only does its work

Nanos before(Nanos now, std::chrono::seconds age) {
  return now - std::chrono::duration_cast<std::chrono::nanoseconds>(age).count();
}

}  // namespace

Task<void> Agent::run_maintenance() {
  for (int round = 0; !phase_.stopping; ++round) {
    if (round == kCheckStoreAfter && !store_->checked_whole()) store_check_.begin();
    if (round % kPruneEvery == kPruneEvery - 1) {
      const Nanos now = clock_.wall();
      bool more = true;
      while (more && !phase_.stopping) {
        const auto pruned = co_await store_->prune(before(now, config_.retention.delivered),
                                                   before(now, config_.retention.undelivered));
        if (!pruned) log::room("store").error("retention: {}", pruned.error().message);
        more = pruned && *pruned;
      }
    }
    relay_->watch();  // before wake(): a sink runner that was just woken has not run yet, and would look as if it had
                      // slept
    wake_readers();   // for events that the store itself appended (`gap`, `corrupt`)
    const Status done = co_await maintain_once();
    if (!done) log::room("store").error("backlog: {}", done.error().message);
    if (!phase_.stopping) co_await audit_unwritten_denials(false);
    if (!phase_.stopping) co_await registry_->mend();
    maintenance_timer_.expires_after(kMaintenanceEvery);
    if (!phase_.stopping) co_await maintenance_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  phase_.maintenance_done = true;
}

/// Refusals above the limit of a minute have a line once it is over.
Task<void> Agent::audit_unwritten_denials(bool all) {
  if (server_) co_await server_->audit_unwritten_denials(all);
  if (notify_.links) co_await notify_.links->audit_unwritten_denials(all);
  if (grpc_) co_await grpc_->audit_unwritten_denials(all);
}

Task<Status> Agent::maintain_once() {
  DRIFTD_CO_CHECK(co_await store_->look());
  DRIFTD_CO_TRY(fullness_.backlog, co_await store_->backlog());
  const delivery::BacklogLimits limits{config_.delivery.max_backlog_events, config_.delivery.max_backlog_bytes};
  const delivery::Backpressure pressure = delivery::backpressure(fullness_.backlog, limits);
  if (pressure.warn) {
    log::room("delivery")
        .warn("{} undelivered events ({} bytes): {:.0f} % of what may wait", fullness_.backlog.events,
              fullness_.backlog.bytes, pressure.fullness * 100);
  }
  engine_->set_backpressure(pressure.interval_factor, pressure.holds_cycles);
  std::function<bool()> stopping = [this] { return phase_.stopping; };
  DRIFTD_CO_TRY(const bool full, co_await fullness_.limit.enforce(*store_, config_.retention.max_bytes, stopping));
  if (full) publish_full_store();
  co_return co_await store_->announce_audit();
}

void Agent::publish_full_store() {
  core::AgentEvent out;
  out.agent = config_.agent.name;
  out.cluster = config_.agent.cluster;
  out.what = "budget";
  out.message = "store.db holds " + std::to_string(fullness_.limit.bytes()) +
                " bytes, more than retention.max_bytes (" + std::to_string(config_.retention.max_bytes) +
                "), and too little in it may be deleted: " + std::to_string(fullness_.backlog.events) +
                " events wait for their sinks, the rest is state of backends; see `driftd queue` and `driftd status`, "
                "let the sinks have "
                "their events, or raise retention.max_bytes";
  out.details = {{"budget", "store"},
                 {"bytes", std::to_string(fullness_.limit.bytes())},
                 {"max_bytes", std::to_string(config_.retention.max_bytes)}};
  out.at_ns = clock_.wall();
  log::room("store").error("{}", out.message);
  announcer_->publish(std::move(out));
}

}  // namespace driftd::app
