// SPDX-License-Identifier: Apache-2.0
#include "operator/leader.hpp"

#include "base/escape.hpp"
#include "base/log.hpp"
#include "kube/json_access.hpp"
#include "operator/failure_text.hpp"
#include "operator/host_call.hpp"
#include "operator/times.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;
using Steady = std::chrono::steady_clock;

}  // namespace

Leader::Leader(kube::Api& api, kube::Place lease, std::string identity, LeaseTimes times)
    : api_(api),
      place_(std::move(lease)),
      identity_(identity),
      times_(times),
      election_(std::move(identity), times) {}

std::string Leader::holder() const {
  const std::lock_guard lock(mutex_);
  return holder_;
}

bool Leader::wait(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop, times_.retry, [] { return false; });
  return !stop.stop_requested();
}

Leader::Attempt Leader::attempt(std::stop_token stop) {
  const auto begun = Steady::now();
  HostCall host(stop, election_.attempt_until(begun));
  try {
    if (!client_) client_.emplace(host.call(), api_, kFieldManager);
    const auto lease = client_->get(host.call(), kLeases, place_);
    const auto spec = election_.step(lease, Steady::now(), micro_time_now());
    {
      const std::lock_guard lock(mutex_);
      holder_ = election_.holder();
    }
    if (!spec) return Attempt::follows;
    json object = lease ? *lease
                        : json{{"apiVersion", kLeases.api_version()},
                               {"kind", kLeases.object},
                               {"metadata", {{"name", place_.name}, {"namespace", place_.space}}}};
    object["spec"] = *spec;
    const auto asked = Steady::now();
    last_ = lease ? client_->replace(host.call(), kLeases, object) : client_->create(host.call(), kLeases, object);
    election_.stored(asked);
    fault_.clear();
    const std::lock_guard lock(mutex_);
    holder_ = identity_;
    return Attempt::leads;
  } catch (const sdk::Failure& failure) {
    client_.reset();
    if (failure.code == DRIFTD_CONFLICT) return Attempt::follows;  // another one was faster
    const std::string why = text_of(failure);
    if (why != fault_ && !stop.stop_requested()) {
      log::room("leader").warn("lease {}/{}: {}", place_.space, place_.name, escaped(why));
    }
    fault_ = why;
    return Attempt::failed;
  }
}

bool Leader::acquire(std::stop_token stop) {
  std::string told;
  while (!stop.stop_requested()) {
    if (attempt(stop) == Attempt::leads) {
      log::room("leader").info("{} leads: it holds the lease {}/{}", identity_, place_.space, place_.name);
      return true;
    }
    if (const std::string other = holder(); other != told) {
      log::room("leader").info("waits for the lease {}/{}, which {} holds", place_.space, place_.name,
                               other.empty() ? "nobody" : escaped(other));
      told = other;
    }
    if (!wait(stop)) break;
  }
  return false;
}

bool Leader::hold(std::stop_token stop) {
  while (wait(stop)) {
    attempt(stop);
    if (election_.is_taken() || election_.lost(Steady::now())) {
      log::room("leader").error("lost the lease {}/{}: {}", place_.space, place_.name,
                                election_.is_taken() ? "held by " + escaped(holder())
                                                     : "it could not be renewed in time, " + escaped(fault_));
      return false;
    }
  }
  return true;
}

void Leader::release() {
  HostCall host({}, Steady::now() + times_.retry);
  try {
    kube::ObjectClient client(host.call(), api_, kFieldManager);
    json object = last_;
    object["spec"] = election_.released(kube::find(last_, {"spec"}), micro_time_now());
    client.replace(host.call(), kLeases, object);
  } catch (const sdk::Failure& failure) {
    log::room("leader").warn("the lease {}/{} could not be given up, so the next one waits until it ends: {}",
                             place_.space, place_.name, escaped(failure.what()));
  }
}

}  // namespace driftd::op
