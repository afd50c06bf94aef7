// SPDX-License-Identifier: Apache-2.0
// Attacks by a tenant through registrations: Services, Secrets and PrismBackends of backends that are not theirs.
#include <functional>

#include "hostile_tenant.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST_F(HostileTenant, ABackendOfTheConfigIsSpokenForByNobodyWhomTheConfigDoesNotName) {
  create_map("quiet", "greeting", "hello");
  ASSERT_NO_FATAL_FAILURE(watch());
  define("tenant", "cache", 6666, "one");
  ASSERT_NO_FATAL_FAILURE(settle());
  redefine("tenant", "cache", 7777, "two");
  ASSERT_NO_FATAL_FAILURE(settle());
  EXPECT_TRUE(asks_who_registers("cache")) << agent_->cli({"drifts"}).out << agent_->log();
  EXPECT_THAT(subjects("cache"), testing::Contains("config.updated")) << "the question who may register it is an event";
  EXPECT_THAT(subjects("cache"), testing::AllOf(testing::Not(testing::Contains("credentials.rotated")),
                                                testing::Not(testing::Contains("endpoint.changed"))));
  EXPECT_EQ(agent_->cli({"resources", "cache"}).out.find("registration"), std::string::npos)
      << "nothing of the tenant's registration is used";
  expect_unharmed();
}

TEST_F(HostileTenant, TheNameOfADiscoveredBackendIsNotTakenOverFromAnotherNamespace) {
  namespaces_ = "a-tenant, tenant, prod";
  for (const char* each : {"a-tenant", "prod"}) kube_.create_namespace(each);
  create_map("quiet", "greeting", "hello");
  define("prod", "orders", 6379, "canary-own");
  ASSERT_NO_FATAL_FAILURE(watch());
  const auto endpoint = [&] {
    return agent_->backend("orders") ? agent_->backend("orders")->value("endpoint", "") : "none";
  };
  ASSERT_TRUE(eventually([&] { return endpoint() == "orders.prod.svc.cluster.local:6379"; }, seconds(30)))
      << agent_->log();
  define("a-tenant", "orders", 6666, "one");  // it is listed before the one of the owner
  kube_.create(path("services"), {{"metadata", {{"name", "untyped"}, {"labels", {{"prism.io/backend", "true"}}}}},
                                  {"spec", {{"ports", {{{"name", "p"}, {"port", 1}}}}}}});  // it lacks the labels of a
                                                                                            // backend
  ASSERT_NO_FATAL_FAILURE(settle());
  redefine("a-tenant", "orders", 7777, "two");
  ASSERT_NO_FATAL_FAILURE(settle());
  EXPECT_TRUE(asks_who_registers("orders")) << agent_->cli({"drifts"}).out << agent_->log();
  EXPECT_EQ(endpoint(), "orders.prod.svc.cluster.local:6379");
  EXPECT_THAT(subjects("orders"), testing::AllOf(testing::Not(testing::Contains("credentials.rotated")),
                                                 testing::Not(testing::Contains("endpoint.changed"))));

  redefine("prod", "orders", 6380, "canary-new");  // the owner's changes are still reported
  EXPECT_TRUE(reports_new_endpoint_and_password("orders")) << agent_->log();
  for (const char* each : {"services/orders", "secrets/orders"}) {
    kube_.patch("/api/v1/namespaces/prod/" + std::string(each),
                {{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}});
  }
  const auto deleted = [&] {  // although the tenant still uses the name
    const auto seen = subjects("orders");
    return std::ranges::find(seen, "deleted") != seen.end();
  };
  EXPECT_TRUE(eventually(deleted, seconds(30))) << agent_->log() << agent_->cli({"backends"}).out;
  EXPECT_EQ(all_output().find("canary-"), std::string::npos);
  expect_unharmed();
}

/// Every tenant may write PrismBackends. None of them may hide another one, whatever it contains and refers to.
TEST_F(HostileTenant, PoisonousPrismBackendsCostNoOtherBackendItsRegistration) {
  namespaces_ = "tenant, prod";
  kube_.create_namespace("prod");
  kube_.install_prism();
  create_map("quiet", "greeting", "hello");
  define("prod", "orders", 6379, "canary-own");
  kube_.create_secret("tenant", "mine", {{"password", "canary-mine"}});
  ASSERT_NO_FATAL_FAILURE(watch());
  const auto endpoint = [&] {
    return agent_->backend("orders") ? agent_->backend("orders")->value("endpoint", "") : "none";
  };
  ASSERT_TRUE(eventually([&] { return endpoint() == "orders.prod.svc.cluster.local:6379"; }, seconds(30)))
      << agent_->log();
  int number = 0;
  const auto poison = [&](const json& spec) {
    kube_.create("/apis/prism.io/v1alpha1/namespaces/tenant/prismbackends",
                 {{"apiVersion", "prism.io/v1alpha1"},
                  {"kind", "PrismBackend"},
                  {"metadata", {{"name", "a-poison-" + std::to_string(++number)}}},
                  {"spec", spec}});
  };
  const json mine{{"secret", {{"name", "mine"}}}};
  poison({{"type", "kafka"}, {"config", {{"auth", "x"}}}, {"discovery", mine}});
  poison({{"type", "kafka"}, {"config", {{"auth", {{"sasl", {1}}}}}}, {"discovery", mine}});
  poison({{"type", std::string(10'000, 't')}, {"discovery", mine}});
  poison({{"type", "redis"},
          {"metadata", {{"long", std::string(20'000, 'x')}}},
          {"capabilities", {std::string(20'000, 'c')}}});
  for (const std::string& name :
       {std::string(".."), std::string("a%b"), std::string("a/b?c"), std::string("UPPER"), std::string(500'000, 'x')}) {
    poison({{"type", "redis"}, {"discovery", {{"secret", {{"name", name}}}, {"service", {{"name", name}}}}}});
    poison({{"type", "redis"}, {"discovery", {{"secret", {{"name", "mine"}, {"namespace", name}}}}}});
  }
  for (int i = 0; i < 100; ++i) {
    poison({{"type", "redis"},
            {"discovery",
             {{"secret", {{"name", "none-" + std::to_string(i)}}},
              {"service", {{"name", "none-" + std::to_string(i)}}}}}});
  }
  ASSERT_NO_FATAL_FAILURE(settle());
  EXPECT_EQ(drifts("cluster", "*a-poison-*").size(), static_cast<std::size_t>(number)) << "each is a drift of its own";
  EXPECT_TRUE(backend_reports("cluster", "faults of what defines its backends"));
  redefine("prod", "orders", 6380, "canary-new");
  EXPECT_TRUE(reports_new_endpoint_and_password("orders")) << agent_->log();
  EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
  EXPECT_EQ(all_output().find("canary-"), std::string::npos);
  expect_unharmed();
}

/// Every tenant may label as many objects as it likes. That uses up only the tenant's own share of backends. If the
/// tenant removes many of them at once, only these deletions wait for a decision.
TEST_F(HostileTenant, WhatANamespaceLabelsTakesNoOthersRoomAndHoldsNobodysDeletion) {
  namespaces_ = "tenant, prod";  // listed before the others
  kube_.create_namespace("prod");
  create_map("quiet", "greeting", "hello");
  define("prod", "orders", 6379, "canary-own");
  define("prod", "billing", 6379, "canary-own");
  for (int i = 0; i < 13; ++i) define("tenant", "mine-" + std::to_string(i), 6379, "one");
  ASSERT_NO_FATAL_FAILURE(watch());
  const auto exists = [&](const std::string& name) { return agent_->backend(name).has_value(); };
  ASSERT_TRUE(eventually([&] { return exists("orders") && exists("billing") && exists("mine-12"); }, seconds(30)))
      << agent_->log();
  const json unlabel{{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}};
  const auto remove_labels = [&](const std::string& name_space, const std::string& name) {
    for (const char* each : {"/services/", "/secrets/"})
      kube_.patch("/api/v1/namespaces/" + name_space + each + name, unlabel);
  };
  for (int i = 0; i < 12; ++i) remove_labels("tenant", "mine-" + std::to_string(i));
  ASSERT_NO_FATAL_FAILURE(settle());
  const auto deletions_are_held = [&] {
    const auto open = drifts("cluster", "*");
    return std::ranges::any_of(open, [](const auto& d) { return d.value("resource", "") == "scope/discovered"; });
  };
  // Refreshes the cluster again and again until `condition` is true.
  const auto refresh_until = [&](const std::function<bool()>& condition, seconds max_wait) {
    return eventually(
        [&] {
          agent_->cli({"refresh", "cluster", "--full"});
          return condition();
        },
        max_wait);
  };
  ASSERT_TRUE(refresh_until(deletions_are_held, seconds(30)));
  remove_labels("prod", "billing");
  EXPECT_TRUE(refresh_until([&] { return !exists("billing"); }, seconds(30))) << agent_->cli({"backends"}).out;
  EXPECT_TRUE(exists("mine-0")) << "its deletion waits for a decision";

  const json labels{{"prism.io/backend", "true"}, {"prism.io/backend-type", "redis"}};
  for (int i = 0; i < 1'010; ++i) {
    kube_.create(path("configmaps"),
                 {{"metadata", {{"name", "a-fill-" + std::to_string(i)}, {"labels", labels}}}, {"data", {{"a", "b"}}}});
  }
  define("prod", "later", 6379, "canary-own");
  redefine("prod", "orders", 6380, "canary-new");
  EXPECT_TRUE(refresh_until([&] { return exists("later"); }, seconds(60)))
      << agent_->cli({"backends"}).out << agent_->log();
  EXPECT_TRUE(reports_new_endpoint_and_password("orders")) << agent_->log();
  EXPECT_TRUE(backend_reports("cluster", "namespace tenant is passed over"));
  EXPECT_TRUE(exists("mine-12")) << "the tenant keeps the backend that it had";
  EXPECT_THAT(subjects("mine-12"), testing::Not(testing::Contains("deleted")));
  EXPECT_FALSE(exists("a-fill-1009"))
      << "the last one is above the tenant's share; the first ones may have been within it";
  EXPECT_EQ(all_output().find("canary-"), std::string::npos);
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
