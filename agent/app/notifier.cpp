// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "app/agent.hpp"
#include "base/digest.hpp"

namespace driftd::app {
namespace {

/// An id is no secret, so it only must not occur twice.
std::string new_silence_id() {
  std::random_device device;
  std::string bytes;
  for (int i = 0; i < 6; ++i) bytes.push_back(static_cast<char>(device() & 0xffu));
  return "s-" + to_hex(bytes);
}

}  // namespace

void Agent::make_notifier() {
  constexpr std::size_t kRefLength = 12;  // characters of a binding, as `driftd drifts` prints them
  delivery::NotifierNeeds needs;
  needs.core = executors_.core.get_executor();
  needs.reader = store_.get();
  needs.store = store_.get();
  needs.clock = &clock_;
  needs.agent = config_.agent.name;
  needs.cluster = config_.agent.cluster;
  needs.routes = [this](const core::AgentEvent& event) { return agent_routes(event); };
  needs.stored = [this] { relay_->wake(); };
  needs.backends = [this] {
    std::map<std::string, delivery::NotifierNeeds::Backend> out;
    for (const auto& view : engine_->view()) {
      out[view.name] = {view.labels, view.health.state == core::HealthReport::State::down};
    }
    return out;
  };
  needs.ref = [this](const core::Drift& drift) { return drift.id + "@" + binding(drift).substr(0, kRefLength); };
  notify_.notifier = std::make_shared<delivery::Notifier>(std::move(needs), config_.notifications);
}

Task<Result<std::vector<core::Silence>>> Agent::silences() {
  auto found = co_await store_->silences(clock_.wall());
  co_return found;
}

Task<Result<core::Silence>> Agent::add_silence(core::Silence silence, core::AuditEntry line) {
  constexpr std::size_t kMaxSilences = 1'000;
  DRIFTD_CO_TRY(const auto known, co_await store_->silences(clock_.wall()));
  if (known.size() >= kMaxSilences) {
    co_return fail(Code::conflict, "there are 1000 silences already; `driftd silence list` shows them, end some");
  }
  silence.id = new_silence_id();
  line.subject = "id " + silence.id + (line.subject.empty() ? "" : ", ") + line.subject;
  DRIFTD_CO_CHECK(co_await store_->write_silence(silence, std::move(line)));
  notify_.notifier->wake();
  co_return silence;
}

Task<Result<core::Silence>> Agent::expire_silence(std::string id, core::AuditEntry line) {
  DRIFTD_CO_TRY(const auto known, co_await store_->silences(clock_.wall()));
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.id == id; });
  if (found == known.end()) {
    co_return fail(Code::not_found, "no silence " + id + "; `driftd silence list` shows those that hold");
  }
  core::Silence ended = *found;
  ended.expires_ns = clock_.wall();
  DRIFTD_CO_CHECK(co_await store_->write_silence(ended, std::move(line)));
  notify_.notifier->wake();
  co_return ended;
}

}  // namespace driftd::app
