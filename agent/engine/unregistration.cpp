// SPDX-License-Identifier: Apache-2.0
#include "engine/unregistration.hpp"

#include <optional>
#include <utility>

#include "base/log.hpp"
#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

/// Those of one kind, or of all if `kind` is empty.
Task<Result<std::vector<core::ResourceId>>> resources_with_open_drifts(core::Store& store, std::string uid,
                                                                       std::string kind = {}) {
  DRIFTD_CO_TRY(const auto entries, co_await store.index(uid));
  std::vector<core::ResourceId> ids;
  for (const auto& entry : entries) {
    if (entry.has_open && (kind.empty() || entry.id.kind == kind)) ids.push_back(entry.id);
  }
  co_return ids;
}

Task<Status> drop_kind(Context& context, Ledger& ledger, std::string kind) {
  const std::string reason = "the provider has no kind " + kind + " any more";
  DRIFTD_CO_TRY(auto open, co_await resources_with_open_drifts(context.store, ledger.row().uid, kind));
  const std::size_t retired = open.size();
  DRIFTD_CO_CHECK(co_await retire(context, ledger, std::move(open), reason));
  DRIFTD_CO_TRY(const std::size_t questions, co_await ledger.update_scope_drift(kind, {}));
  CommitExtras extras;  // nobody can use an approval of deletions any more
  extras.row = ledger.without_finished_deletions(kind, [](const std::string&) { return false; });
  if (extras.row) DRIFTD_CO_CHECK(co_await ledger.commit_extras(std::move(extras)));
  DRIFTD_CO_CHECK(co_await ledger.forget_kind(kind));
  log::room("engine").warn("{}: {}: what was stored of it was dropped; drifts of {} resources and {} questions ended",
                           ledger.spec().name, reason, retired, questions);
  co_return Status{};
}

/// Nobody reads any more how an operation ended that was under way.
Task<Status> end_operations(Context& context, Ledger& ledger) {
  CommitExtras extras;
  for (const auto& open : ledger.enforcements().open()) {
    auto ended = core::advanced(open, core::EnforcementState::unknown, "the backend was unregistered while it was open",
                                context.clock.wall());
    extras.audit.push_back(enforcement_entry(context.store_key, ended));
    extras.enforcements.push_back(std::move(ended));
  }
  if (extras.empty()) co_return Status{};
  const auto status = co_await ledger.commit_extras(std::move(extras));
  co_return status;
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

Task<Status> drop_former_kinds(std::shared_ptr<Context> context, Ledger& ledger) {
  for (const auto& kind : ledger.former_kinds()) DRIFTD_CO_CHECK(co_await drop_kind(*context, ledger, kind));
  co_return Status{};
}

Task<Status> unregister_backend(std::shared_ptr<Context> context, core::BackendRow row, Unregistration why) {
  core::BackendSpec gone;
  gone.name = row.name;
  gone.provider = row.provider;
  gone.registration_json = row.registration;
  restore_from_registration(row.registration, gone);
  gone.rules = std::make_shared<core::Rules>();
  Ledger ledger(context, gone, row);
  DRIFTD_CO_CHECK(co_await ledger.load());
  if (row.notes.contains(kDefinitionNote)) {
    note_definition(row, gone);
    row.notes[kUnregisteredNote] = why.cause;
    CommitExtras decided;
    decided.row = row;
    decided.audit = std::move(why.audit);
    DRIFTD_CO_CHECK(co_await ledger.commit_extras(std::move(decided)));
  }
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
  DRIFTD_CO_CHECK(co_await end_operations(*context, ledger));
  const auto begun = row.notes.extract(kUnregisteredNote);  // an earlier process may have begun it
  CommitExtras extras;
  extras.declarations = ledger.declarations().unmentioned({}, row.uid);  // withdraws all of them
  extras.row = row;
  extras.row->deleted_ns = context->clock.wall();
  std::string cause = begun ? begun.mapped() : std::move(why.cause);
  if (cause.empty()) cause = discovered_by(row) != nullptr ? "discovered no more" : "configuration";
  core::BackendEvent event = core::registration_event(core::ChangeType::deleted, ledger.event_context(std::move(cause)),
                                                      std::nullopt, {}, context->clock.wall());
  extras.events.push_back(ledger.draft(std::move(event)));
  context->metrics.forget(row.name);
  const auto status = co_await ledger.commit_extras(std::move(extras));
  co_return status;
}

}  // namespace driftd::engine
