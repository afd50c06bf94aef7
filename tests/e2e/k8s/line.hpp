// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <chrono>
#include <map>
#include <set>
#include <string>

#include "driftd/v1/event.pb.h"
#include "support/agent.hpp"
#include "support/kube.hpp"
#include "support/nats.hpp"

namespace driftd::test {

/// A cluster with a namespace `prod`, a NATS server, and an agent that watches the cluster and publishes to NATS.
struct K8sLine : testing::Test {
  KubeServer kube;
  NatsServer nats;
  TempDir dir;

  K8sLine() { kube.create_namespace("prod"); }

  static std::string secrets() { return "/api/v1/namespaces/prod/secrets"; }

  /// Returns the settings by which the cluster's admin logs in.
  std::string admin_login() const {
    return "tls: { ca_file: \"" + kube.ca_file() + "\" }, token_file: \"" + kube.file("token") + "\"";
  }
  /// `port` is that of a relay in front of the API server, or 0 without one. `login` is the settings besides `server`
  /// and what is read; the admin's if empty.
  Agent agent(int port = 0, std::string login = {}) const {
    if (login.empty()) login = admin_login();
    const std::string server = "https://127.0.0.1:" + std::to_string(port == 0 ? kube.port() : port);
    const std::string settings =
        "{ server: \"" + server + "\", " + login + ", namespaces: [prod], include: [secret, config_map, service] }";
    return Agent(dir, "backends:\n  - name: cluster\n    provider: k8s\n    settings: " + settings +
                          "\nsinks:\n  bus: { type: nats, servers: [\"" + nats.url() + "\"], views: false }\n");
  }
  static void begin(Agent& agent) {
    agent.start();
    ASSERT_TRUE(eventually([&] { return agent.established({"cluster"}); }, std::chrono::seconds(120))) << agent.log();
    // From here on the watch reports every change.
    ASSERT_TRUE(eventually([&] { return agent.backend("cluster")->at("worker").at("state") == "running"; }));
  }
  static v1::BackendChangeEvent event_of(const NatsReceived& message) {
    v1::BackendChangeEvent out;
    EXPECT_TRUE(out.ParseFromString(message.body));
    return out;
  }
  void rotate(const std::string& name, const std::string& value) const {
    kube.patch(secrets() + "/" + name, {{"stringData", {{"password", value}}}});
  }
};

}  // namespace driftd::test
