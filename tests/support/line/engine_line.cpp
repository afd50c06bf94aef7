// SPDX-License-Identifier: Apache-2.0
#include "support/line/engine_line.hpp"

#include <stdexcept>

#include "engine/context.hpp"

namespace driftd::test {
namespace {

void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

EngineLine::EngineLine(const TempDir& dir)
    : factory_(world, {{"source", source}, {"other", other}}, core_.get_executor()) {
  store::Settings settings;
  settings.data_dir = dir.path() / "data";
  store_ = must(store::SqliteStore::open(settings, store_pool_.get_executor(), io_.get_executor(), *clock));
  relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), *store_, *clock);
}

EngineLine::~EngineLine() {
  if (thread_.joinable()) {
    if (engine_) wait(engine_->stop());
    wait(relay_->stop());
    work_.reset();
    thread_.join();
  }
  engine_.reset();
  context_.reset();
  relay_.reset();
  factory_.last.reset();
  io_.join();
  diff_.join();
  store_pool_.join();
  store_.reset();
}

void EngineLine::add_sink(std::string name, std::unique_ptr<core::Sink> sink) {
  core::Route all;
  all.to.push_back(name);
  routes_->push_back(std::move(all));
  relay_->add_sink(std::move(name), "test", std::move(sink));
}

void EngineLine::make_engine() {
  cut_ = std::make_unique<CutStore>(*store_);
  context_ = std::make_shared<engine::Context>(engine::Context{core_.get_executor(), diff_.get_executor(), *cut_,
                                                               *clock, metrics_, store_->key().store, "agent",
                                                               "cluster", routes_, [this] { relay_->wake(); }});
  context_->enforcement = enforcement_;
  engine_ = std::make_unique<engine::Engine>(context_, factory_, store_->key().worker, store_->key().digest_seed);
  for (const auto& each : {world, source, other}) each->clock = clock;
  thread_ = std::thread([this] { core_.run(); });
  must(wait(relay_->start()));
}

void EngineLine::start_with(std::vector<core::BackendSpec> specs, bool loops) {
  make_engine();
  must(wait(engine_->start(std::move(specs), loops)));
}

void EngineLine::start_from(
    const std::function<std::vector<core::BackendSpec>(const std::vector<core::BackendRow>&)>& specs) {
  make_engine();
  must(wait(engine_->start(specs(must(wait(store_->backends()))), false)));
}

void EngineLine::start(bool loops, core::Rules rules, bool backends) {
  make_engine();
  core::BackendSpec spec;
  spec.budgets = budgets;
  spec.name = name;
  spec.was = was;
  spec.provider = provider;
  spec.settings_json = settings;
  spec.registration_json = "{}";
  spec.interval = interval;
  spec.spoken_by = spoken_by;
  spec.enforce = enforce;
  if (rules.generation == 0) rules.generation = 1;
  spec.rules = std::make_shared<const core::Rules>(std::move(rules));
  std::vector<core::BackendSpec> specs(backends ? 1 : 0, spec);
  const auto declares = [](const ScriptedWorld& its_world) {
    return !its_world.declared_kinds.empty() || !its_world.extensions.empty() || !its_world.pages.empty();
  };
  for (const auto& [source_name, its_world] : {std::pair("source", source), std::pair("other", other)}) {
    if (!declares(*its_world)) continue;
    spec.name = source_name;
    spec.was.clear();
    specs.push_back(spec);
  }
  must(wait(engine_->start(std::move(specs), loops)));
}

engine::CycleReport EngineLine::refresh(bool full, const std::string& backend) {
  return must(wait(engine_->refresh(backend.empty() ? name : backend, full))).front().report;
}

std::vector<engine::Engine::BackendRefresh> EngineLine::settle() { return must(wait(engine_->settle())); }

Result<std::vector<core::Step>> EngineLine::explain(core::ResourceId id, std::string path) {
  return wait(engine_->explain(name, std::move(id), std::move(path)));
}

std::vector<core::Drift> EngineLine::drifts(bool all) {
  core::DriftFilter filter;
  filter.all = all;
  std::vector<core::Drift> out;
  for (auto& row : must(wait(store_->drifts(filter)))) out.push_back(std::move(row.drift));
  return out;
}

std::vector<core::StoredEvent> EngineLine::events() { return must(wait(store_->events(0, 100'000))); }

Result<core::Drift> EngineLine::decide(std::string drift, core::Decision decision) {
  for (const auto& open : drifts()) {  // like a person who has just looked at the drift
    if (open.id == drift && !decision.digest) decision.digest = binding(open);
  }
  return decide_as_is(std::move(drift), std::move(decision));
}

Result<core::Drift> EngineLine::decide_as_is(std::string drift, core::Decision decision) {
  return wait(engine_->decide(std::move(drift), std::move(decision)));
}

std::string EngineLine::binding(const core::Drift& drift) {
  return on_core([this, &drift] { return engine_->binding(drift); });
}

std::vector<core::AuditRow> EngineLine::audit() { return must(wait(store_->audit(1000))); }

store::SqliteStore& EngineLine::store() { return *store_; }

core::EnforcementView EngineLine::enforcement() {
  return on_core([this] { return engine_->enforcement(); });
}

core::BackendView EngineLine::view() {
  return on_core([this] { return engine_->view().front(); });
}

void EngineLine::pressure(bool hold) {
  on_core([this, hold] {
    engine_->set_backpressure(1, hold);
    return 0;
  });
}

void EngineLine::change(core::ResourceId id) {
  on_core([this, &id] {
    factory_.last->change(std::move(id));
    return 0;
  });
}

void EngineLine::replay(ScriptedSession::States states) {
  on_core([this, &states] {
    factory_.last->replay(std::move(states));
    return 0;
  });
}

void EngineLine::hint() {
  on_core([this] {
    factory_.last->hint();
    return 0;
  });
}

}  // namespace driftd::test
