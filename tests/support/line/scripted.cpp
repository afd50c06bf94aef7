// SPDX-License-Identifier: Apache-2.0
#include "support/line/scripted.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <utility>

#include "core/scope.hpp"

namespace driftd::test {
namespace {

/// Cuts a page after each `count` records. The last part has what else is in it.
std::vector<core::RecordPage> cut(core::RecordPage page, std::size_t count) {
  std::vector<core::RecordPage> out(1);
  for (auto& record : std::exchange(page.records, {})) {
    if (out.back().records.size() >= count) out.emplace_back();
    out.back().records.push_back(std::move(record));
  }
  page.records = std::move(out.back().records);
  out.back() = std::move(page);
  return out;
}

}  // namespace

core::Observation ScriptedSession::observed(const core::ResourceId& id, const std::string& body,
                                            const std::string& external_name) const {
  core::Observation out;
  out.id = id;
  out.body = body;
  out.external_name = external_name;
  const auto at = world_->observed_at.find(id);
  out.observed_ns = at != world_->observed_at.end() ? at->second : world_->observed_ns.value_or(world_->clock->wall());
  const auto version = world_->versions.find(id);
  if (version != world_->versions.end()) out.version = version->second;
  const auto unread = world_->unread.find(id);
  if (unread != world_->unread.end()) out.unread.push_back(unread->second);
  out.digest = digest(1, {id.kind, id.id, body, external_name, out.unread.empty() ? "" : out.unread[0].path});
  return out;
}

/// Returns the cursor of the current resources: a hash of all of them.
std::string ScriptedSession::cursor() const {
  std::string all;
  for (const auto& [id, body] : world_->resources) all += render(id) + body + "\n";
  const Digest now = digest(0, {all});
  return std::to_string(now.low) + std::to_string(now.high);
}

ScriptedSession::ScriptedSession(std::shared_ptr<ScriptedWorld> world, asio::any_io_executor core)
    : world_(std::move(world)),
      wake_(core),
      hanging_(std::move(core)) {
  auto info = std::make_shared<core::ProviderInfo>();
  info->id = "scripted";
  info->types = {"scripted"};
  info->kinds = world_->kinds;
  info->has_watch = world_->watches;
  info->has_diff = world_->diffs;
  for (const auto& id : world_->extensions) info->extensions.push_back({id, 1});
  for (const auto& [kind, text] : world_->schemas) {
    info->schemas[kind] = core::KindSchema::parse(text).value();
    info->schema_texts[kind] = text;
  }
  info_ = std::move(info);
}

Task<Result<std::shared_ptr<const core::ProviderInfo>>> ScriptedSession::info() { co_return info_; }

/// Does what a worker does (worker/sent_records.hpp).
void ScriptedSession::leave_out_known(const core::RefreshRequest& request, core::RecordPage& page) {
  world_->digests = 0;
  for (auto& record : page.records) {
    const bool wanted = std::find(request.whole.begin(), request.whole.end(), record.id) != request.whole.end();
    const bool first = &record == &page.records.front();
    const auto found = sent_.find(record.id);
    const bool known = found != sent_.end() && found->second == record.digest;
    sent_[record.id] = record.digest;
    if (!request.digests || wanted || first || !known || !record.unread.empty()) continue;
    core::Observation only;
    only.id = record.id;
    only.version = record.version;
    only.observed_ns = record.observed_ns;
    only.digest = record.digest;
    only.digest_only = true;
    record = std::move(only);
    ++world_->digests;
  }
}

Task<Result<core::RefreshOutcome>> ScriptedSession::refresh(core::RefreshRequest request, core::PageHandler on_page) {
  while (world_->refresh_hangs && !stopped_) {
    hanging_.expires_at(std::chrono::steady_clock::time_point::max());
    co_await hanging_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  core::RefreshOutcome outcome;
  outcome.unchanged =
      world_->cursors && !request.cursor.empty() && (world_->always_unchanged || request.cursor == cursor());
  world_->unchanged += outcome.unchanged ? 1 : 0;
  if (outcome.unchanged) co_return outcome;
  const std::string cursor_now = world_->cursors ? cursor() : std::string();
  std::size_t left = world_->max_delivered;
  for (const auto& kind : world_->kinds) {
    core::RecordPage page = page_of(kind, left);
    leave_out_known(request, page);
    for (auto& part : cut(std::move(page), world_->page_records)) {
      const Status taken = co_await on_page(std::move(part));
      if (!taken) co_return fail(taken.error());
    }
  }
  for (const auto& [backend, kind] : world_->declared_kinds) {
    core::RecordPage page = declared_page(backend, kind);
    const Status taken = co_await on_page(std::move(page));
    if (!taken) co_return fail(taken.error());
  }
  for (core::RecordPage page : world_->pages) {
    const Status taken = co_await on_page(std::move(page));
    if (!taken) co_return fail(taken.error());
  }
  if (world_->refresh_fails) co_return fail(*world_->refresh_fails);
  if (world_->cursors && world_->checkpoints) {
    core::RecordPage last;
    last.marks.push_back({core::Mark::Type::checkpoint});
    last.marks.back().cursor = cursor_now;
    const Status taken = co_await on_page(std::move(last));
    if (!taken) co_return fail(taken.error());
  }
  co_return outcome;
}

Task<Result<core::ReadOutcome>> ScriptedSession::read(std::vector<core::ResourceId> ids, std::chrono::milliseconds) {
  if (world_->before_read) world_->before_read();
  if (world_->read_fails) co_return fail(*world_->read_fails);
  core::ReadOutcome out;
  for (const auto& id : ids) {
    if (world_->unreadable.count(id) > 0) continue;
    bool found_tenant = false;
    for (const auto& tenant : world_->tenants) {
      if (id != core::ResourceId{std::string(core::kRegistration), tenant.backend}) continue;
      out.found.push_back(observed(id, tenant.body));
      if (!tenant.name_space.empty()) out.found.back().metadata["defined_in"] = tenant.name_space;
      found_tenant = true;
    }
    const auto declared = world_->declared.find({id.id, id});  // the registration of the backend of that name
    if (id.kind == core::kRegistration && declared != world_->declared.end()) {
      out.found.push_back(observed(id, declared->second));
      out.found.back().metadata = world_->metadata;
      continue;
    }
    const auto found = world_->resources.find(id);
    if (found == world_->resources.end()) {
      const bool has_diagnostics = id.kind == core::kRegistration && !world_->read_diagnostics.empty();
      if (has_diagnostics)
        out.diagnostics.insert(out.diagnostics.end(), world_->read_diagnostics.begin(), world_->read_diagnostics.end());
      if (!found_tenant && !has_diagnostics) out.not_found.push_back(id);
    } else {
      out.found.push_back(observed(id, found->second, world_->external_name));
    }
  }
  co_return out;
}

Task<Result<core::HealthReport>> ScriptedSession::health() {
  if (world_->health_fails) co_return fail(*world_->health_fails);
  core::HealthReport out;
  out.state = world_->health;
  out.system_identity = world_->identity;
  co_return out;
}

Task<Status> ScriptedSession::watch(std::string, core::PageHandler on_page) {
  while (!stopped_) {
    if (!replayed_.empty()) {
      core::RecordPage page;
      for (const auto& [id, body] : replayed_.front()) {
        page.records.push_back(observed(id, body));
        page.records.back().tombstone = body.empty();
      }
      page.marks.push_back({core::Mark::Type::bookmark});
      page.marks.back().cursor = "replayed";
      replayed_.pop_front();
      const Status taken = co_await on_page(std::move(page));
      if (!taken) co_return taken;
      continue;
    }
    if (changed_.empty()) {
      wake_.expires_at(std::chrono::steady_clock::time_point::max());
      co_await wake_.async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    core::RecordPage page;  // a page ends with a mark or 512 records, as in the host
    while (!changed_.empty() && page.marks.empty() && page.records.size() < 512) {
      if (changed_.front() == core::ResourceId{}) {
        page.marks.push_back({core::Mark::Type::bookmark});
      } else {
        page.records.push_back(observed(changed_.front(), world_->resources.at(changed_.front())));
      }
      changed_.pop_front();
    }
    const Status taken = co_await on_page(std::move(page));
    if (!taken) co_return taken;
  }
  co_return Status{};
}

Task<Result<std::vector<core::Demotion>>> ScriptedSession::demote(core::ResourceId id, std::vector<core::Change>) {
  if (world_->diff_fails.count(id) > 0) co_return fail(Code::internal, "the diff crashed");
  std::vector<core::Demotion> out;
  if (world_->equivalent.count(id) > 0) out.push_back({0, false, "means the same"});
  co_return out;
}

Task<Result<core::DiscoverOutcome>> ScriptedSession::discover() { co_return world_->discovered; }

Task<Result<std::string>> ScriptedSession::upgrade(std::string kind, std::uint32_t from_revision, std::string body) {
  world_->upgraded.push_back(kind + " " + std::to_string(from_revision) + " " + body);
  if (world_->upgrade_fails) co_return fail(*world_->upgrade_fails);
  const auto found = world_->upgrades.find(body);
  if (found == world_->upgrades.end()) co_return fail(Code::unsupported, "that revision is unknown");
  co_return found->second;
}

/// As a provider: all of it or nothing, only if the values found are still there, and never a resource that is gone.
Task<Result<core::ApplyOutcome>> ScriptedSession::apply(core::ApplyRequest request) {
  world_->applied.push_back(request);
  if (world_->apply) {
    if (auto answer = world_->apply(request)) co_return std::move(*answer);
  }
  co_return put_back(*world_, request);
}

Result<core::ApplyOutcome> put_back(ScriptedWorld& world, const core::ApplyRequest& request) {
  const auto found = world.resources.find(request.id);
  if (found == world.resources.end()) return fail(Code::not_found, render(request.id) + " is gone");
  DRIFTD_TRY(core::Value body, core::parse(found->second));
  core::ApplyOutcome out;
  out.result = core::ApplyOutcome::Result::success;
  for (const auto& change : request.changes) {
    DRIFTD_TRY(const auto path, core::Path::parse(change.path));
    const core::Value* there = core::find(body, path);
    const auto now = there == nullptr ? std::nullopt : std::optional(core::render(*there));
    if (now != change.old_value) return fail(Code::conflict, change.path + " is " + now.value_or("absent"));
    core::Value value;
    if (change.new_value) {
      DRIFTD_TRY(value, core::parse(*change.new_value));
    }
    DRIFTD_CHECK(core::assign(body, path, change.new_value ? &value : nullptr));
    out.commands.push_back("SET " + request.id.id + " " + change.path + " " + change.new_value.value_or("-"));
    out.undo.push_back("SET " + request.id.id + " " + change.path + " " + change.old_value.value_or("-"));
  }
  out.changed = !request.dry_run;
  if (!request.dry_run) found->second = core::render(body);
  return out;
}

core::WorkerStatus ScriptedSession::status() const {
  core::WorkerStatus out;
  out.state = world_->worker;
  return out;
}

Task<void> ScriptedSession::stop() {
  stopped_ = true;
  hanging_.cancel();
  wake_.cancel();
  co_return;
}

void ScriptedSession::change(core::ResourceId id) {
  changed_.push_back(std::move(id));
  wake_.cancel();
}

void ScriptedSession::replay(States states) {
  replayed_.push_back(std::move(states));
  wake_.cancel();
}

core::RecordPage ScriptedSession::page_of(const std::string& kind, std::size_t& left) const {
  core::RecordPage page;
  core::Mark complete;
  complete.type = core::Mark::Type::complete;
  complete.kind = kind;
  for (const auto& [id, body] : world_->resources) {
    if (id.kind != kind) continue;
    ++complete.count;
    if (left == 0) continue;
    --left;
    page.records.push_back(observed(id, body, world_->external_name));
    page.records.back().metadata = world_->metadata;
  }
  if (world_->sends_complete) page.marks.push_back(complete);
  page.diagnostics = world_->diagnostics;
  return page;
}

core::RecordPage ScriptedSession::declared_page(const std::string& backend, const std::string& kind) const {
  core::RecordPage page;
  core::Mark complete;
  complete.type = core::Mark::Type::complete;
  complete.backend = backend;
  complete.kind = kind;
  for (const auto& [key, body] : world_->declared) {
    if (key.first != backend || key.second.kind != kind) continue;
    ++complete.count;
    page.records.push_back(observed(key.second, body));
    page.records.back().backend = backend;
    page.records.back().metadata = world_->metadata;
  }
  for (const auto& tenant : world_->tenants) {
    if (tenant.backend != backend || kind != core::kRegistration) continue;
    ++complete.count;
    page.records.push_back(observed({kind, backend}, tenant.body));
    page.records.back().backend = backend;
    if (!tenant.name_space.empty()) page.records.back().metadata["defined_in"] = tenant.name_space;
  }
  if (world_->sends_complete) page.marks.push_back(complete);
  return page;
}

Result<std::shared_ptr<core::Session>> ScriptedFactory::open(core::SessionSpec spec) {
  if (const auto source = sources_.find(spec.backend); source != sources_.end()) {
    return std::shared_ptr<core::Session>(std::make_shared<ScriptedSession>(source->second, core_));
  }
  last = std::make_shared<ScriptedSession>(world_, core_);
  return std::shared_ptr<core::Session>(last);
}

}  // namespace driftd::test
