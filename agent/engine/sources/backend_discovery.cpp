// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/backend_discovery.hpp"

#include <algorithm>

#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {
namespace {

// From a change to its discovery, and twice as long as the last discovery took if that is longer: while changes come
// without end, at most a third of the time is spent on discoveries.
constexpr std::chrono::milliseconds kPause{500};

}  // namespace

BackendDiscovery::BackendDiscovery(std::shared_ptr<Context> context, const Ledger& ledger, core::Session& session)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session) {}

bool BackendDiscovery::discovers() const {
  return ledger_.spec().discovered_by.empty() && ledger_.spec().discover && ledger_.info() != nullptr &&
         ledger_.info()->offers("driftd.discover");
}

void BackendDiscovery::ask() {
  if (!discovers()) return;
  asked_ = true;
  if (due_ != Time::max()) return;
  due_ = context_->clock.mono() + std::max<Time::duration>(kPause, 2 * took_);
}

/// Reports on backends that are not registered yet were kept until then.
Task<void> BackendDiscovery::run(bool changed) {
  leave_to_cycle();
  if (!ledger_.spec().discovered_by.empty()) co_return;
  const auto now = context_->clock.mono();
  if (ledger_.info() == nullptr || (!changed && !asked_ && now < next_)) co_return;
  asked_ = false;      // what comes from now on may be missing in this discovery
  if (!discovers()) {  // backends that an earlier plugin or configuration discovered are removed
    core::DiscoverOutcome none;
    none.complete = true;
    (void)co_await context_->sources->apply_discovery(ledger_.spec().name, std::move(none));
    coverage_.reset();
    co_return;
  }
  auto outcome = co_await session_.discover();
  if (!outcome) {
    core::Coverage failed;
    failed.kind = "discovered";
    failed.established = true;
    failed.resources = coverage_ ? coverage_->resources : 0;
    failed.reasons.push_back(std::string(render(outcome.error().code)) + ": " + outcome.error().message);
    coverage_ = std::move(failed);
    asked_ = true;  // the next cycle tries again
    co_return;
  }
  next_ = now + outcome->next;
  coverage_ = co_await context_->sources->apply_discovery(ledger_.spec().name, std::move(*outcome));
  took_ = context_->clock.mono() - now;
}

}  // namespace driftd::engine
