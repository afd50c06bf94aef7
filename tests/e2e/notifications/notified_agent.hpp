// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <filesystem>

#include "support/agent.hpp"
#include "support/http_receiver.hpp"

namespace driftd::test {

/// A Terraform state with this many topics.
inline std::string topics_state(int topics, int partitions) {
  std::string out = R"({"version":4,"terraform_version":"1.9.0","serial":7)"
                    R"(,"lineage":"abc","outputs":{},"resources":[)";
  for (int i = 0; i < topics; ++i) {
    out += std::string(i == 0 ? "" : ",") + R"({"mode":"managed","type":"kafka_topic","name":"t)" + std::to_string(i) +
           R"(","provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(partitions) + "}}]}";
  }
  return out + "]}";
}

/// An agent that watches one Terraform state and sends its notifications to a receiver.
class Notified : public testing::Test {
 protected:
  /// `notifications`: the keys of the section; `sink`: those of the sink besides its address.
  void run_agent(const std::string& notifications, const std::string& sink, const std::string& of_backend = "") {
    state_ = dir_.write("infra/terraform.tfstate", topics_state(topics_, 3));
    agent_ = std::make_unique<Agent>(
        dir_,
        "defaults: { interval: 200ms }\nbackends:\n  - name: platform\n    provider: terraform\n    settings: { "
        "path: " +
            state_ + " }\n" + of_backend + "sinks:\n  chat: { type: webhook, url: \"" + receiver_.url() +
            "\", allow_http_loopback: true, " + sink + " }\nnotifications: { " + notifications +
            " }\nroutes:\n  - { match: { change: [agent.notification, agent.escalation] }, to: [chat] }\n",
        std::map<std::string, std::string>{{"HOOK_SECRET", "hook-canary-of-24-bytes!"}});
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"platform"}); }, std::chrono::seconds(60)))
        << agent_->log();
  }
  void change(int partitions) {
    const std::string fresh = dir_.write("infra/next", topics_state(topics_, partitions));
    std::filesystem::rename(fresh, state_);
  }
  std::vector<nlohmann::json> sent() const {
    std::vector<nlohmann::json> out;
    for (const auto& request : receiver_.received()) out.push_back(nlohmann::json::parse(request.body));
    return out;
  }
  std::string ref() const { return agent_->rows({"drifts"}).at(0).at("ref"); }
  std::string id() const { return agent_->rows({"drifts"}).at(0).at("id"); }
  Output cli(std::vector<std::string> words) const { return agent_->cli(std::move(words)); }

  int topics_ = 1;
  TempDir dir_;
  std::string state_;
  HttpReceiver receiver_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace driftd::test
