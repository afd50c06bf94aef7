// SPDX-License-Identifier: Apache-2.0
#include "kube/cluster_guard.hpp"

namespace driftd::kube {
namespace {

[[noreturn]] void refuse(const std::string& uid, const std::string& before) {
  throw sdk::Failure(DRIFTD_UNAVAILABLE, "another cluster answers at this endpoint (kube-system has uid " + uid +
                                             ", before " + before + ")");
}

}  // namespace

void ClusterGuard::on_health(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  if (!uid.empty()) known_ = uid;
}

bool ClusterGuard::begin_refresh() {
  const std::lock_guard lock(mutex_);
  if (judged_.empty()) judged_ = known_;
  const bool moved = !known_.empty() && known_ != judged_;
  if (moved && asked_ == known_) judged_ = known_;
  if (judged_ == known_) {
    refused_.clear();
    asked_.clear();
  }
  return moved;
}

void ClusterGuard::refresh_failed() {
  const std::lock_guard lock(mutex_);
  asked_ = refused_;
}

void ClusterGuard::check_connection(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  if (judged_.empty()) judged_ = known_.empty() ? uid : known_;
  if (judged_ == uid) return;
  if (uid.empty()) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE,
                       "the cluster at this endpoint no longer reports its identity (kube-system had uid " + judged_ +
                           "): results are withheld until it does; grant the right to get the "
                           "namespace kube-system");
  }
  refused_ = uid;
  refuse(uid, judged_);
}

void ClusterGuard::forget_other() {
  const std::lock_guard lock(mutex_);
  refused_.clear();
}

bool ClusterGuard::has_met_other() const {
  const std::lock_guard lock(mutex_);
  return !refused_.empty();
}

void ClusterGuard::check(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  if (uid.empty()) return;
  for (const std::string* other : {&refused_, &known_, &judged_}) {  // for each record: no copies
    if (!other->empty() && *other != uid) refuse(*other, uid);
  }
}

std::string ClusterGuard::uid() const {
  const std::lock_guard lock(mutex_);
  return judged_;
}

}  // namespace driftd::kube
