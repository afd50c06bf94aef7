// SPDX-License-Identifier: Apache-2.0
#include "engine/enforcement_log.hpp"

#include <algorithm>
#include <iterator>

namespace driftd::engine {
namespace {

using State = core::EnforcementState;

bool has_no_known_end(const core::Enforcement& one) {
  return core::is_open(one.state) || one.state == State::unknown || one.state == State::rollback_failed;
}

}  // namespace

void EnforcementLog::load(core::EnforcementRecord record) { record_ = std::move(record); }

void EnforcementLog::adopt(const std::vector<core::Enforcement>& operations,
                           const std::vector<core::EnforcementStop>& stops) {
  auto& known = record_.operations;
  for (const auto& one : operations) {
    const auto same = [&](const core::Enforcement& other) { return other.id == one.id; };
    const auto found = std::find_if(known.begin(), known.end(), same);
    const bool ends = !core::is_open(one.state) && (found == known.end() || core::is_open(found->state));
    if (ends) ++ended_[std::string(core::render(one.state))];
    if (found == known.end())
      known.push_back(one);
    else
      *found = one;
  }
  for (const auto& stop : stops) {
    std::erase_if(record_.stops, [&](const auto& other) { return other.resource == stop.resource; });
    record_.stops.push_back(stop);
  }
}

void EnforcementLog::bound_times(Nanos now) {
  for (auto& one : record_.operations) {
    one.planned_ns = std::min(one.planned_ns, now);
    one.updated_ns = std::min(one.updated_ns, now);
  }
}

void EnforcementLog::forget_before(Nanos planned_ns) {
  std::erase_if(record_.operations,
                [&](const auto& one) { return one.planned_ns < planned_ns && !has_no_known_end(one); });
}

const core::Enforcement* EnforcementLog::find_open(const core::ResourceId& resource) const {
  const auto found = std::find_if(record_.operations.begin(), record_.operations.end(), [&](const auto& one) {
    return core::is_open(one.state) && one.resource == resource;
  });
  return found == record_.operations.end() ? nullptr : &*found;
}

const core::Enforcement* EnforcementLog::find(const std::string& id) const {
  const auto found =
      std::find_if(record_.operations.begin(), record_.operations.end(), [&](const auto& one) { return one.id == id; });
  return found == record_.operations.end() ? nullptr : &*found;
}

std::vector<core::Enforcement> EnforcementLog::open() const {
  std::vector<core::Enforcement> out;
  std::copy_if(record_.operations.begin(), record_.operations.end(), std::back_inserter(out),
               [](const auto& one) { return core::is_open(one.state); });
  return out;
}

std::optional<core::OwnWrite> EnforcementLog::own_write(const core::ResourceId& resource) const {
  const core::Enforcement* one = find_open(resource);
  if (one == nullptr || one->state == State::planned) return std::nullopt;
  return core::OwnWrite{one->drift_id, one->digest, one->actor, "put back by " + one->id};
}

}  // namespace driftd::engine
