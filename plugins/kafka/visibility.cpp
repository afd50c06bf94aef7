// SPDX-License-Identifier: Apache-2.0
#include "kafka/visibility.hpp"

#include "kafka/mapping.hpp"

namespace driftd::kafka {

sdk::Diagnostic denied(std::string_view kind, const std::string& right, const std::string& text) {
  return {DRIFTD_DENIED, std::string(kind), {}, {}, text + "; grant " + right, right, 0};
}

std::optional<sdk::Diagnostic> Visibility::cluster_hidden(std::string_view kind) {
  if (answers_.acls().outcome.ok()) return std::nullopt;
  return denied(kind, "Describe on Cluster",
                std::string(kind) + " cannot be listed whole: " + answers_.acls().outcome.text);
}

const std::optional<sdk::Diagnostic>& Visibility::topics_hidden() {
  if (probed_) return hidden_;
  probed_ = true;
  if (answers_.acls().open) return hidden_;
  for (const auto& [name, outcome] : client_.topic_presence(call_, {Client::unused_topic_name()})) {
    if (outcome.code != DRIFTD_NOT_FOUND && !outcome.ok()) {
      hidden_ = denied("topic", "Describe on Topic *", "topics that driftd may not describe are not listed");
    }
  }
  if (hidden_) return hidden_;
  if (const Acl* deny = hiding_topics(answers_.acls().bindings, settings_.principal())) {
    hidden_ =
        denied("topic", "Describe on Topic " + deny->name, "topics may be hidden by the binding " + acl_id(*deny));
  }
  return hidden_;
}

std::optional<sdk::Diagnostic> Visibility::offsets_hidden() {
  if (!topics_hidden()) return std::nullopt;  // there is none: no group has begun yet
  for (const auto& [name, outcome] : client_.topic_presence(call_, {"__consumer_offsets"})) {
    if (outcome.code == DRIFTD_NOT_FOUND) continue;
    return denied("group", "Describe on Topic " + name,
                  "groups whose partition of " + name +
                      " has no leader are not listed, and "
                      "driftd may not see which these are");
  }
  return std::nullopt;
}

}  // namespace driftd::kafka
