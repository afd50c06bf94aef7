// SPDX-License-Identifier: Apache-2.0
#include "operator/lease.hpp"

#include <algorithm>

namespace driftd::op {
namespace {

using json = nlohmann::json;

std::string text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t number(const json& object, const char* name, std::int64_t otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

/// A Lease counts in whole seconds; a shorter lease is written as one.
std::int64_t seconds(std::chrono::milliseconds time) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(time).count());
}

}  // namespace

std::optional<json> Election::step(const std::optional<json>& lease, Time now, const std::string& wall) {
  json spec = json::object();
  if (lease) {
    const auto found = lease->find("spec");
    if (found != lease->end() && found->is_object()) spec = *found;
  }
  holder_ = text(spec, "holderIdentity");
  const std::string read = spec.dump();
  if (!lease || read != seen_) {
    seen_ = read;
    seen_at_ = now;
  }
  const bool is_mine = holder_ == identity_;
  if (!holder_.empty() && !is_mine) {
    const auto theirs = std::chrono::seconds(number(spec, "leaseDurationSeconds", seconds(times_.duration)));
    if (now < seen_at_ + theirs) return std::nullopt;
  }
  spec["renewTime"] = wall;
  spec["leaseDurationSeconds"] = seconds(times_.duration);
  spec["holderIdentity"] = identity_;
  if (is_mine) return spec;
  spec["acquireTime"] = wall;
  spec["leaseTransitions"] = number(spec, "leaseTransitions", -1) + 1;
  return spec;
}

Election::Time Election::attempt_until(Time now) const {
  const Time half = now + times_.renew / 2;
  return leads(now) ? std::min(half, *renewed_ + times_.renew) : half;
}

json Election::released(const json& spec, const std::string& wall) const {
  json out = spec;
  out["holderIdentity"] = "";
  out["leaseDurationSeconds"] = 1;
  out["renewTime"] = wall;
  return out;
}

}  // namespace driftd::op
