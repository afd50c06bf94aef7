// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/backend_discovery.hpp"

#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {

BackendDiscovery::BackendDiscovery(std::shared_ptr<Context> context, const Ledger& ledger, core::Session& session)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session) {}

/// Reports on backends that are not registered yet were kept until then.
Task<void> BackendDiscovery::run(bool changed) {
  // A discovered backend must not discover others. Unregistering it waits for this cycle while the registry is locked,
  // so locking the registry here would deadlock.
  if (!ledger_.spec().discovered_by.empty()) co_return;
  const auto now = context_->clock.mono();
  if (ledger_.info() == nullptr || (!changed && now < next_)) co_return;
  const bool offers = ledger_.info()->offers("driftd.discover");
  if (!offers || !ledger_.spec().discover) {  // backends that an earlier plugin or configuration discovered are removed
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
    co_return;
  }
  next_ = now + outcome->next;
  coverage_ = co_await context_->sources->apply_discovery(ledger_.spec().name, std::move(*outcome));
}

}  // namespace driftd::engine
