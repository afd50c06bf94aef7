// SPDX-License-Identifier: Apache-2.0
#include "kafka/cluster_answers.hpp"

#include <algorithm>

namespace driftd::kafka {

const Metadata& ClusterAnswers::metadata() {
  if (!metadata_) {
    metadata_sent_ = call_.now_ns();
    metadata_ = client_.metadata(call_);
  }
  return *metadata_;
}

const Acls& ClusterAnswers::acls() {
  if (!acls_) {
    acls_sent_ = call_.now_ns();
    acls_ = client_.acls(call_);
    const auto code = acls_->outcome.code;
    if (code != DRIFTD_OK && code != DRIFTD_DENIED && code != DRIFTD_UNSUPPORTED) {
      throw sdk::Failure(code, "asking for the ACLs: " + acls_->outcome.text, "acl");
    }
    // librdkafka (2.10 too) swallows the error of this answer: denied and no authorizer both look like an empty list.
    if (acls_->outcome.ok() && acls_->bindings.empty()) {
      acls_->open = acls_->open || no_authorizer();
      if (!acls_->open) {
        acls_->outcome = {DRIFTD_DENIED,
                          "the broker listed no ACL at all, which is how a refusal looks (where driftd is a super "
                          "user and there is no ACL, one binding for anybody settles it)"};
      }
    }
  }
  return *acls_;
}

bool ClusterAnswers::no_authorizer() {
  bool seen = false;
  for (const auto& one : brokers()) {
    for (const auto& entry : one.entries) {
      if (entry.name != "authorizer.class.name") continue;
      if (entry.value && !entry.value->empty()) return false;
      seen = seen || !entry.sensitive;
    }
  }
  return seen;
}

const std::vector<Configs>& ClusterAnswers::brokers() {
  if (!brokers_) {
    std::vector<std::int32_t> ids;
    for (const auto& broker : metadata().brokers) ids.push_back(broker.id);
    std::sort(ids.begin(), ids.end());
    brokers_ = client_.broker_configs(call_, ids);
  }
  return *brokers_;
}

std::string ClusterAnswers::cluster_id(std::chrono::milliseconds timeout) {
  std::string now = client_.identity(call_, timeout);
  if (!metadata_ || metadata_->cluster_id == now) return now;
  throw sdk::Failure(DRIFTD_UNAVAILABLE,
                     "another cluster answers than a moment ago: " + now + ", before " + metadata_->cluster_id);
}

}  // namespace driftd::kafka
