// SPDX-License-Identifier: Apache-2.0
// What the simulated providers commit: pages of resources with events, one page of a backend at a time.
#include "base/fatal.hpp"
#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBackends = 3, kResources = 6;

std::string uid_of(std::size_t backend) { return "b00000000000000" + std::to_string(backend + 1); }
core::ResourceId id_of(std::size_t resource) { return {"config", "r" + std::to_string(resource)}; }

}  // namespace

void World::plan_commits() {
  for (std::size_t i = 0; i < kBackends; ++i) {
    Backend backend;
    backend.row.uid = uid_of(i);
    backend.row.name = "backend-" + std::to_string(i);
    backend.row.type = backend.row.provider = "redis";
    backend.row.registration = R"({"name":"backend"})";
    backend.resources.resize(kResources);
    backends_.push_back(std::move(backend));
    commit_later(i);
  }
}

void World::commit_later(std::size_t backend) {
  const double mean = 60;  // seconds
  const double wait = std::exponential_distribution<double>(1 / mean)(random_);
  at(now() + std::chrono::milliseconds(1 + static_cast<int>(wait * 1000)), [this, backend] {
    if (committing_) commit(backend, 1 + static_cast<int>(pick(4)));
    if (now() < end_) commit_later(backend);
  });
}

/// Every event goes to one receiver at least.
core::EventDraft World::draft(std::size_t backend, std::size_t resource, const std::string& token) {
  const auto& row = backends_[backend].row;
  core::BackendEvent event;
  event.backend_uid = row.uid;
  event.backend_name = row.name;
  event.backend_type = row.type;
  event.provider = row.provider;
  event.type = core::ChangeType::config_drift_detected;
  event.what = "config.updated";
  event.source = "redis";
  event.drift_id = token;
  event.resource = id_of(resource);
  static constexpr std::array<std::string_view, 3> kSinks = {"bus", "hook", "log"};
  std::vector<std::string> sinks;
  const auto chosen = 1 + pick(7);
  for (std::size_t i = 0; i < kSinks.size(); ++i) {
    if ((chosen >> i & 1) != 0) sinks.emplace_back(kSinks[i]);
  }
  if (extra_.routed && pick(2) == 0) sinks.emplace_back("extra");
  return {std::move(event), std::move(sinks)};
}

void World::commit(std::size_t backend, int events) {
  Backend& of = backends_[backend];
  if (!process_ || !ready_since_ || of.busy || !of.registered || held_) return;
  of.busy = true;
  core::PageCommit page;
  page.backend_uid = of.row.uid;
  const Page number{++pages_, events};
  std::map<std::size_t, std::string> bodies;
  for (int i = 0; i < events; ++i) {
    const std::size_t resource = pick(kResources);
    const std::string token = token_of(number.number, i);
    page.events.push_back(draft(backend, resource, token));
    bodies[resource] = R"({"token":")" + token + R"("})";
  }
  std::vector<std::size_t> written;
  for (const auto& [resource, body] : bodies) {
    core::ResourceWrite write;
    write.next.id = id_of(resource);
    write.next.revision = of.resources[resource].revision;
    write.next.baseline = write.next.observed = body;
    of.resources[resource].in_doubt = body;
    page.writes.push_back(std::move(write));
    written.push_back(resource);
  }
  oracle_->submitted(number, page.events);
  asio::co_spawn(process_->executors.get(Executors::core), commit_page(backend, std::move(page), number, written),
                 fatal);
}

Task<void> World::commit_page(std::size_t backend, core::PageCommit page, Page number,
                              std::vector<std::size_t> written) {
  const auto drafts = page.events;
  const auto result = co_await process_->store->commit(std::move(page));
  Backend& of = backends_[backend];
  of.busy = false;
  if (!result) {
    oracle_->note("page " + std::to_string(number.number) + " is refused: " + result.error().message);
    oracle_->refused(number.number);
    for (const auto resource : written) of.resources[resource].in_doubt.clear();
    co_return;
  }
  for (std::size_t i = 0; i < written.size(); ++i) {
    Resource& resource = of.resources[written[i]];
    resource.revision = result->revisions.at(i);
    resource.body = std::exchange(resource.in_doubt, "");
  }
  for (const auto& event : result->events) {
    if (poison_ > 0 && hook_->chance(poison_)) hook_->poisoned.insert(event.stamp.id);
  }
  oracle_->committed(number.number, result->events, drafts);
  process_->relay->wake();
}

/// A new process registers what is not registered and reads what is stored: what was answered, or a whole page whose
/// answer was lost.
Task<Status> World::load_resources(std::size_t backend) {
  Backend& of = backends_[backend];
  DRIFTD_CO_TRY(const auto rows, co_await process_->store->backends());
  bool known = false;
  for (const auto& row : rows) known = known || row.uid == of.row.uid;
  if (!known && of.registered) oracle_->complain("backend " + of.row.name + " is not registered any more");
  if (!known) {
    core::PageCommit page;
    page.backend_uid = of.row.uid;
    page.backend = of.row;
    DRIFTD_CO_CHECK(co_await process_->store->commit(std::move(page)));
  }
  of.registered = true;
  std::vector<core::ResourceId> ids;
  for (std::size_t i = 0; i < kResources; ++i) ids.push_back(id_of(i));
  DRIFTD_CO_TRY(const auto stored, co_await process_->store->load(of.row.uid, std::move(ids)));
  for (std::size_t i = 0; i < kResources; ++i) {
    Resource& resource = of.resources[i];
    const std::string body = stored[i].observed.value_or("");
    const bool doubted = !resource.in_doubt.empty() && body == resource.in_doubt;
    const bool same = body == resource.body && stored[i].revision == resource.revision;
    if (!same && !(doubted && stored[i].revision == resource.revision + 1))
      oracle_->complain("resource " + std::to_string(i) + " of " + of.row.name + " is " + body + " of revision " +
                        std::to_string(stored[i].revision) + "; committed was " + resource.body + " of revision " +
                        std::to_string(resource.revision));
    resource.revision = stored[i].revision;
    resource.body = body;
    resource.in_doubt.clear();
  }
  co_return Status{};
}

}  // namespace driftd::sim
