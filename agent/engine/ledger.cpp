// SPDX-License-Identifier: Apache-2.0
#include "engine/ledger.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "core/ports/session.hpp"
#include "core/registration_names.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/kept_digest.hpp"
#include "engine/kinds_in_part.hpp"
#include "engine/ledger_page.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {
namespace {

constexpr Nanos kHistory = 30ll * 86'400 * 1'000'000'000;  // of operations, for the brakes
constexpr std::size_t kMaxReadWhole = 1'000;               // resources that one refresh names

bool needs_attention(const core::StoredResource& resource) {
  return std::any_of(resource.open.begin(), resource.open.end(),
                     [](const core::Drift& d) { return d.stale_since_ns || d.expires_ns; });
}

std::uint64_t deletion_seed(const core::RedactionKey& key) {
  return std::stoull(hmac_hex(key.newest(), {"driftd names of deletions 1"}).substr(0, 16), nullptr, 16);
}

bool same_claims(const std::vector<core::Drift>& a, const std::vector<core::Drift>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const core::Drift& one, const core::Drift& other) {
    return one.claimed_by == other.claimed_by && one.claim_until_ns == other.claim_until_ns;
  });
}

bool same_row(const core::StoredResource& a, const core::StoredResource& b, const Digest& kept) {
  return a.digest == kept && a.rules_generation == b.rules_generation && a.observed == b.observed &&
         a.baseline == b.baseline && needs_attention(a) == needs_attention(b) && same_claims(a.open, b.open) &&
         a.revision != 0;
}

}  // namespace

Ledger::Ledger(std::shared_ptr<Context> context, core::BackendSpec spec, core::BackendRow row)
    : context_(std::move(context)),
      spec_(std::move(spec)),
      scope_(core::Scope::of_settings(spec_.settings_json)),
      deletions_(deletion_seed(context_->store_key)) {
  set_row(std::move(row));
  // as the process before left them: what turned since is audited by the first cycle
  rules_.replace(spec_.rules, rules_time(row_.notes, context_->clock.wall()));
}

Task<Status> Ledger::load() {
  DRIFTD_CO_TRY(const auto entries, co_await context_->store.index(row_.uid));
  std::vector<core::ResourceId> open;
  for (const auto& entry : entries) {
    if (!scope_.wants(entry.id)) {
      if (entry.has_open) out_of_scope_.push_back(entry.id);
      continue;
    }
    Index::Entry e;
    e.digest = entry.digest;
    e.generation = static_cast<std::uint32_t>(entry.rules_generation);
    e.present = entry.present;
    e.open = entry.has_open;
    e.attention = entry.has_open;  // the first judgement finds out whether it is stale or expiring
    index_.put(entry.id, e);
    if (entry.has_open) open.push_back(entry.id);
    if (entry.has_open && !entry.present) gone_open_.insert(entry.id);
  }
  DRIFTD_CO_TRY(auto record, co_await context_->store.enforcement_record(row_.uid, context_->clock.wall() - kHistory));
  enforcements_.load(std::move(record));
  DRIFTD_CO_TRY(const auto declared, co_await context_->store.declared_by(row_.uid));
  declarations_.load(declared);
  DRIFTD_CO_CHECK(co_await load_declared());
  const auto status = co_await note_expiries(std::move(open));
  co_return status;
}

void Ledger::reload(core::BackendSpec spec) {
  spec_ = std::move(spec);
  rules_.replace(spec_.rules, context_->clock.wall());
  generations_.clear();
}

void Ledger::take_rules(Nanos now_ns) {
  if (rules_.take(now_ns)) generations_.clear();
}

void Ledger::set_info(std::shared_ptr<const core::ProviderInfo> info) {
  info_ = std::move(info);
  generations_.clear();
  former_ = former_schemas(row_.notes);
  for (const auto& [kind, schema] : info_->schemas) index_.set_versioned(kind, schema->versioned());
}

std::uint64_t Ledger::generation(const std::string& kind) const {
  auto [known, fresh] = generations_.try_emplace(kind, 0);
  if (fresh) known->second = core::generation_under(judge_context(kind, false));
  return known->second;
}

std::uint64_t Ledger::generation(const core::ResourceId& id) const {
  const auto declared = declared_.find(id);
  return core::mix_declarations(generation(id.kind), declared == declared_.end() ? 0 : declared->second);
}

std::shared_ptr<const core::KindSchema> Ledger::schema(const std::string& kind) const {
  if (info_) {
    const auto found = info_->schemas.find(kind);
    if (found != info_->schemas.end()) return found->second;
  }
  return core::KindSchema::unknown(kind);
}

Task<Result<std::optional<core::BackendRow>>> Ledger::row_with_schemas() const {
  if (!info_) co_return std::nullopt;
  std::set<Revision> stored;
  if (has_former(row_.notes, *info_)) {
    DRIFTD_CO_TRY(const auto revisions, co_await context_->store.schema_revisions(row_.uid));
    stored.insert(revisions.begin(), revisions.end());
  }
  core::BackendRow next = row_;
  next.notes = with_schemas(row_.notes, *info_, stored);
  if (next.notes == row_.notes) co_return std::nullopt;
  co_return next;
}

bool Ledger::established(const std::string& kind) const {
  const auto found = row_.established.find(kind);
  return found != row_.established.end() && found->second;
}

bool Ledger::partial(const std::string& kind) const { return !established(kind) && in_part(row_, kind) != InPart::no; }

bool Ledger::settle(const core::Observation& seen, std::uint32_t run, Moment::Mono asked) {
  Index::Entry* entry = index_.find(seen.id);
  if (entry == nullptr) return false;
  entry->run = run;
  // what of it is unknown is not stored, so this process has to find it out once
  const bool is_news = !seen.unread.empty() && entry->asked == 0;
  const std::uint64_t now = std::max<std::uint64_t>(entry->asked, Index::ticks(asked));
  entry->asked = now;
  const bool same = entry->digest == seen.digest;
  if (same) index_.note_version(seen.id, *entry, seen.version);
  return entry->present && !entry->attention && same && !is_news &&
         entry->generation == static_cast<std::uint32_t>(generation(seen.id));
}

std::optional<std::vector<core::ResourceId>> Ledger::to_read_whole() const {
  if (restless_.size() > kMaxReadWhole) return std::nullopt;
  return std::vector(restless_.begin(), restless_.end());
}

core::JudgeContext Ledger::judge_context(const std::string& kind, bool applied_state) const {
  core::JudgeContext out;
  out.backend_uid = row_.uid;
  out.schema = schema(kind);
  out.now_ns = context_->clock.wall();
  out.rules = rules_.at(out.now_ns);
  out.established = established(kind);
  out.partial = partial(kind);
  out.applied_state = applied_state;
  out.keys = context_->keys;
  const auto former = former_.find(kind);
  if (former != former_.end()) out.former = former->second;
  return out;
}

core::EventContext Ledger::event_context(std::string cause) const {
  core::EventContext out;
  out.backend_uid = row_.uid;
  out.provider = info_ ? info_->id : spec_.provider;
  out.agent = context_->agent;
  out.cluster = context_->cluster;
  out.cause = std::move(cause);
  out.backend.name = spec_.name;
  out.backend.type = row_.type;
  out.backend.endpoint = spec_.endpoint;
  out.backend.config_json = core::event_config(row_.type, spec_.registration_json);
  out.backend.metadata = spec_.metadata;
  for (const auto& [name, label] : spec_.labels) out.backend.metadata[name] = label;
  out.backend.capabilities = spec_.capabilities;
  out.patterns = spec_.patterns;
  return out;
}

std::vector<std::string> Ledger::sinks_for(const core::BackendEvent& event) const {
  return core::resolve_routes(*context_->routes, event.what, event.backend_name, event.resource, spec_.labels);
}

core::EventDraft Ledger::draft(core::BackendEvent event) const {
  core::EventDraft out;
  out.sinks = sinks_for(event);
  out.event = std::move(event);
  return out;
}

core::PageCommit Ledger::to_page_commit(std::vector<JudgedResource>& judged, const CommitExtras& extras,
                                        const std::string& cause) const {
  core::PageCommit page;
  page.backend_uid = row_.uid;
  page.cursor = extras.cursor;
  page.watch_cursor = extras.watch_cursor;
  page.established = extras.established;
  page.backend = extras.row;
  page.events = extras.events;
  page.declarations = extras.declarations;
  for (auto& write : page.declarations) write.declaration.digest = kept_digest(context_->store_key, write.declaration);
  page.audit = extras.audit;
  page.enforcements = extras.enforcements;
  page.enforcement_stops = extras.stops;
  page.link = extras.link.value_or("");
  page.link_used_ns = extras.link_used_ns;
  const core::EventContext about = event_context(cause);
  for (auto& one : judged) {
    if (one.judgement.dropped) continue;
    const Digest kept = kept_digest(context_->store_key, one.judgement.next);
    const bool changes = !one.judgement.transitions.empty() || !same_row(one.before, one.judgement.next, kept);
    if (!changes && !extras.binds) continue;
    core::ResourceWrite write;
    write.next = one.judgement.next;
    write.next.digest = kept;
    for (const auto& transition : one.judgement.transitions) {
      auto line = expiry_entry(context_->store_key, one.before, transition, spec_.name, context_->clock.wall());
      // The expiry comes before the decision that follows it.
      if (line) page.audit.insert(page.audit.begin(), std::move(*line));
      if (!transition.drift.open()) write.ended.push_back(transition.drift);
      page.events.push_back(draft(core::drift_event(transition, one.before, one.judgement.next, about)));
    }
    page.writes.push_back(std::move(write));
  }
  return page;
}

void Ledger::update_index(const core::StoredResource& next, const Update& update) {
  if (!scope_.wants(next.id)) return;  // out of scope: its drifts end, but it was not deleted (semantics 4)
  note_expiry(next);
  gone_open_.erase(next.id);
  if (!next.observed && !next.open.empty()) gone_open_.insert(next.id);
  Index::Entry entry;
  entry.digest = next.digest;
  entry.generation = static_cast<std::uint32_t>(next.rules_generation);
  entry.run = update.run;
  entry.asked = update.asked;
  entry.present = next.observed.has_value();
  entry.open = !next.open.empty();
  entry.unknown = update.unknown;
  entry.attention = needs_attention(next);
  const Index::Entry& kept = index_.put(next.id, entry);
  unread_.keep(next, update.seen);
  const bool taken = update.seen != nullptr && update.seen->digest == next.digest;
  if (taken) index_.note_version(next.id, kept, update.seen->version);
  // The same record is not settled the next time either if the row does not have its digest.
  const bool not_taken = update.seen != nullptr && !taken;
  if (not_taken || (entry.present && (entry.attention || entry.digest == Digest{})))
    restless_.insert(next.id);
  else
    restless_.erase(next.id);
}

void Ledger::adopt(const CommitExtras& extras) {
  if (extras.row) {
    core::BackendRow row = *extras.row;
    row.health = row_.health;  // commit_health() may have changed it since this row was copied
    set_row(std::move(row));
    generations_.clear();
  }
  enforcements_.adopt(extras.enforcements, extras.stops);
  if (extras.cursor) row_.cursor = *extras.cursor;
  if (extras.watch_cursor) row_.watch_cursor = *extras.watch_cursor;
  for (const auto& kind : extras.established) row_.established[kind] = true;
  if (!extras.established.empty()) generations_.clear();
  for (const auto& target : declarations_.adopt(extras.declarations)) context_->sources->declared(target);
}

Task<Result<core::CommitResult>> Ledger::store(core::PageCommit page) {
  core::Metrics& metrics = context_->metrics;
  const std::size_t drafts = page.events.size();
  metrics.event_drafted(spec_.name, drafts);
  auto committed = co_await context_->store.commit(std::move(page));
  if (committed) {
    for (const auto& event : committed->events) metrics.event_published(spec_.name, event.what);
  } else {
    metrics.event_withdrawn(spec_.name, drafts);
    if (committed.error().code != Code::conflict) ++unstored_;
  }
  metrics.drafts_ended(spec_.name, drafts);
  co_return committed;
}

Task<Status> Ledger::commit(core::StoredResource before, core::Judgement judgement, std::string cause,
                            CommitExtras extras) {
  std::vector<JudgedResource> one;
  one.push_back({std::move(before), judgement});
  core::PageCommit page = to_page_commit(one, extras, cause);
  DRIFTD_CO_TRY(const auto committed, co_await store(std::move(page)));
  adopt(extras);
  const Index::Entry* known = index_.find(judgement.next.id);
  Update update;
  if (known != nullptr) update = {known->run, known->unknown, known->asked};
  update_index(judgement.next, update);
  if (!committed.events.empty()) context_->committed();
  co_return Status{};
}

Task<Result<std::vector<core::ResourceId>>> Ledger::expire_due_decisions() {
  const Nanos now = context_->clock.wall();
  std::vector<core::ResourceId> due, out;
  for (const auto& [id, at] : expiring_) {
    if (at <= now) due.push_back(id);
  }
  if (due.empty()) co_return out;
  for (const auto& id : due) {  // one at a time: there may be many, each with megabytes
    std::vector<core::ResourceId> ids(1, id);
    DRIFTD_CO_TRY(auto rows, co_await context_->store.load(row_.uid, std::move(ids)));
    core::Judgement judgement = core::expire_decisions(rows.front(), now);
    if (judgement.transitions.empty()) {
      expiring_.erase(id);
      continue;
    }
    const Status done = co_await commit(std::move(rows.front()), std::move(judgement), "the decision ran out");
    if (!done && done.error().code != Code::conflict) co_return fail(done.error());
    if (done) out.push_back(id);
  }
  co_return out;
}

Task<Status> Ledger::commit_health(core::HealthReport::State health, std::vector<core::EventDraft> events) {
  core::PageCommit page;
  page.backend_uid = row_.uid;
  page.health = health;
  page.events = std::move(events);
  DRIFTD_CO_TRY(const auto committed, co_await store(std::move(page)));
  row_.health = health;
  if (!committed.events.empty()) context_->committed();
  co_return Status{};
}

Task<Status> Ledger::commit_extras(CommitExtras extras) {
  std::vector<ResourceReading> nothing;
  const auto applied = co_await apply(std::move(nothing), std::move(extras), false, 0, nullptr);
  if (!applied) co_return fail(applied.error());
  co_return Status{};
}

}  // namespace driftd::engine
