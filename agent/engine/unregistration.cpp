// SPDX-License-Identifier: Apache-2.0
#include "engine/unregistration.hpp"

#include <optional>
#include <utility>

#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

Task<Result<std::vector<core::ResourceId>>> resources_with_open_drifts(core::Store& store, std::string uid) {
  DRIFTD_CO_TRY(const auto entries, co_await store.index(uid));
  std::vector<core::ResourceId> ids;
  for (const auto& entry : entries) {
    if (entry.has_open) ids.push_back(entry.id);
  }
  co_return ids;
}

}  // namespace

Task<Status> retire(Context& context, Ledger& ledger, std::vector<core::ResourceId> open, std::string reason) {
  core::Decision decision;
  decision.verb = core::Decision::Verb::retire;
  decision.actor = "driftd";
  decision.reason = std::move(reason);
  decision.at_ns = context.clock.wall();
  for (const auto& id : open) {  // one at a time: there may be many, each with megabytes
    std::vector<core::ResourceId> ids(1, id);
    DRIFTD_CO_TRY(auto rows, co_await context.store.load(ledger.row().uid, ids));
    const auto drifts = rows.front().open;
    for (const auto& drift : drifts) {
      DRIFTD_CO_TRY(core::Judgement judgement, core::decide(rows.front(), drift.id, decision));
      DRIFTD_CO_CHECK(co_await ledger.commit(std::move(rows.front()), std::move(judgement), decision.reason));
      DRIFTD_CO_TRY(rows, co_await context.store.load(ledger.row().uid, ids));
    }
  }
  co_return Status{};
}

Task<Status> unregister_backend(std::shared_ptr<Context> context, core::BackendRow row) {
  core::BackendSpec gone;
  gone.name = row.name;
  gone.provider = row.provider;
  gone.registration_json = row.registration;
  restore_from_registration(row.registration, gone);
  gone.rules = std::make_shared<core::Rules>();
  Ledger ledger(context, gone, row);
  DRIFTD_CO_CHECK(co_await ledger.load());
  DRIFTD_CO_TRY(auto open, co_await resources_with_open_drifts(context->store, row.uid));
  DRIFTD_CO_CHECK(co_await retire(*context, ledger, std::move(open), "backend unregistered"));
  // An approval belongs to this backend, not to the next one of the same name.
  const core::ResourceId claim{"claim", row.name};
  if (ledger.index().find(claim) != nullptr) {
    std::vector<core::ResourceId> ids(1, claim);
    DRIFTD_CO_TRY(auto claims, co_await context->store.load(row.uid, std::move(ids)));
    core::Judgement over = core::judge_claims(row.uid, claims.front(), {}, context->clock.wall());
    DRIFTD_CO_CHECK(co_await ledger.commit(std::move(claims.front()), std::move(over), "backend unregistered"));
  }
  CommitExtras extras;
  extras.declarations = ledger.declarations().unmentioned({}, row.uid);  // withdraws all of them
  extras.row = row;
  extras.row->deleted_ns = context->clock.wall();
  const std::string cause = discovered_by(row) != nullptr ? "discovered no more" : "configuration";
  core::BackendEvent event = core::registration_event(core::ChangeType::deleted, ledger.event_context(cause),
                                                      std::nullopt, {}, context->clock.wall());
  extras.events.push_back(ledger.draft(std::move(event)));
  context->metrics.forget(row.name);
  const auto status = co_await ledger.commit_extras(std::move(extras));
  co_return status;
}

}  // namespace driftd::engine
