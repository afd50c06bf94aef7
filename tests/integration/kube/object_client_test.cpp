// SPDX-License-Identifier: Apache-2.0
// kube::ObjectClient against a real API server: each kind of write, and how it is refused.
#include <functional>

#include "following.hpp"
#include "kube/object_client.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

struct KubeObjectClient : KubeClient {
  HostedCall hosted;
  sdk::Call call{hosted.handle()};
  kube::Connection admin = connection();
  kube::Api api{admin};
  kube::ObjectClient client{call, api, "first"};
  std::string space = fresh_namespace();

  json config_map(const std::string& name, const json& data) const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"namespace", space}}},
            {"data", data}};
  }
  static sdk::Failure failure_of(const std::function<void()>& what) {
    try {
      what();
    } catch (const sdk::Failure& failure) {
      return failure;
    }
    return {DRIFTD_INTERNAL, "nothing was thrown"};
  }
};

TEST_F(KubeObjectClient, CreatesReadsReplacesAndDeletes) {
  EXPECT_EQ(client.get(call, config_maps(), {space, "c"}), std::nullopt);
  const json made = client.create(call, config_maps(), config_map("c", {{"a", "1"}}));
  EXPECT_EQ(made.at("metadata").at("managedFields").at(0).at("manager"), "first");
  EXPECT_EQ(failure_of([&] { client.create(call, config_maps(), config_map("c", {})); }).code, DRIFTD_CONFLICT);

  json next = made;
  next["data"]["a"] = "2";
  const json stored = client.replace(call, config_maps(), next);
  EXPECT_EQ(client.get(call, config_maps(), {space, "c"})->at("data").at("a"), "2");
  const auto stale = failure_of([&] { client.replace(call, config_maps(), next); });
  EXPECT_EQ(stale.code, DRIFTD_CONFLICT) << stale.what();
  EXPECT_THAT(stale.what(), HasSubstr("/configmaps/c"));
  EXPECT_EQ(failure_of([&] { client.replace(call, config_maps(), config_map("c", {})); }).code, DRIFTD_INVALID)
      << "a write without a resourceVersion would be blind";

  const std::string uid = made.at("metadata").at("uid");
  EXPECT_EQ(failure_of([&] {
              client.remove(call, config_maps(), {space, "c"}, {"another-uid", {}});
            }).code,
            DRIFTD_CONFLICT);
  const std::string old = made.at("metadata").at("resourceVersion");
  EXPECT_EQ(failure_of([&] { client.remove(call, config_maps(), {space, "c"}, {uid, old}); }).code, DRIFTD_CONFLICT);
  EXPECT_TRUE(client.remove(call, config_maps(), {space, "c"}, {uid, stored.at("metadata").at("resourceVersion")}));
  EXPECT_FALSE(client.remove(call, config_maps(), {space, "c"}, {})) << "it is gone";
}

TEST_F(KubeObjectClient, AppliesItsOwnFieldsAndTakesOthersOnlyByForce) {
  kube::ObjectClient second(call, api, "second");
  client.apply(call, config_maps(), config_map("c", {{"a", "1"}, {"b", "1"}}), false);
  second.apply(call, config_maps(), config_map("c", {{"c", "1"}}), false);
  const auto owned = failure_of([&] { second.apply(call, config_maps(), config_map("c", {{"a", "2"}}), false); });
  EXPECT_EQ(owned.code, DRIFTD_CONFLICT) << owned.what();
  EXPECT_THAT(owned.what(), HasSubstr("\"first\"")) << "the owner is named";
  second.apply(call, config_maps(), config_map("c", {{"a", "2"}}), true);
  EXPECT_EQ(client.get(call, config_maps(), {space, "c"})->at("data"), (json{{"a", "2"}, {"b", "1"}}))
      << "what it no longer names is given up";
}

TEST_F(KubeObjectClient, WritesTheStatusApartFromTheObject) {
  const json any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const json version = {{"name", "v1"},
                        {"served", true},
                        {"storage", true},
                        {"schema", {{"openAPIV3Schema", any}}},
                        {"subresources", {{"status", json::object()}}}};
  kube().create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                {{"apiVersion", "apiextensions.k8s.io/v1"},
                 {"kind", "CustomResourceDefinition"},
                 {"metadata", {{"name", "things.kube.test"}}},
                 {"spec",
                  {{"group", "kube.test"},
                   {"scope", "Cluster"},
                   {"names", {{"kind", "Thing"}, {"plural", "things"}}},
                   {"versions", json::array({version})}}}});
  const kube::Resource things{"thing", "/apis/kube.test/v1", "things", "Thing", false, {}, {}};
  json thing = {{"apiVersion", "kube.test/v1"},
                {"kind", "Thing"},
                {"metadata", {{"name", "t"}}},
                {"spec", {{"a", 1}}},
                {"status", {{"phase", "Guessed"}}}};
  json made;
  ASSERT_TRUE(eventually([&] {
    const auto tried = failure_of([&] { made = client.create(call, things, thing); });
    return made.is_object() || tried.code != DRIFTD_UNSUPPORTED;
  }));
  ASSERT_TRUE(made.is_object());
  EXPECT_FALSE(made.contains("status")) << "a create of the object writes no status";
  made["spec"]["a"] = 2;
  made["status"]["phase"] = "Ready";
  const json stored = client.replace(call, things, made, kube::Part::kStatus);
  EXPECT_EQ(stored.at("status").at("phase"), "Ready");
  EXPECT_EQ(stored.at("spec").at("a"), 1) << "a write of the status changes nothing else";
  EXPECT_EQ(stored.at("metadata").at("generation"), 1);
  EXPECT_EQ(failure_of([&] { client.replace(call, things, made, kube::Part::kStatus); }).code, DRIFTD_CONFLICT);

  json applied = {{"apiVersion", "kube.test/v1"}, {"kind", "Thing"}, {"metadata", {{"name", "t"}}}};
  applied["status"] = {{"note", "n"}};
  const json both = client.apply_status(call, things, applied, true);
  EXPECT_EQ(both.at("status"), (json{{"phase", "Ready"}, {"note", "n"}}));
  applied["metadata"]["resourceVersion"] = stored.at("metadata").at("resourceVersion");
  EXPECT_EQ(failure_of([&] { client.apply_status(call, things, applied, true); }).code, DRIFTD_CONFLICT);
  applied["metadata"] = {{"name", "nobody"}};
  EXPECT_EQ(failure_of([&] { client.apply_status(call, things, applied, true); }).code, DRIFTD_NOT_FOUND);

  EXPECT_EQ(client.merge(call, things, {{}, "t"}, {{"spec", {{"a", nullptr}, {"b", 1}}}}).at("spec"), (json{{"b", 1}}));
  EXPECT_EQ(failure_of([&] { client.merge(call, things, {{}, "nobody"}, json::object()); }).code, DRIFTD_NOT_FOUND);
}

TEST_F(KubeObjectClient, ARefusalNamesTheRightTheFieldOrTheTypeThatIsMissing) {
  kube::Connection other = admin;
  const json rule = {{"apiGroups", {""}}, {"resources", {"configmaps"}}, {"verbs", {"get"}}};
  other.identification.token = kube().account(space, "reader", json::array({rule}));
  kube::Api of_other(other);
  kube::ObjectClient reader(call, of_other, "reader");
  const json object = config_map("c", {});
  const std::string where = " configmaps in namespace " + space;
  const auto right_of = [](const sdk::Failure& failure) { return std::pair(failure.code, failure.right); };
  const auto denied = [&](const std::string& verb) { return std::pair(DRIFTD_DENIED, verb + where); };
  EXPECT_EQ(right_of(failure_of([&] { reader.create(call, config_maps(), object); })), denied("create"));
  EXPECT_EQ(right_of(failure_of([&] { reader.apply(call, config_maps(), object, false); })), denied("patch"));
  EXPECT_EQ(right_of(failure_of([&] { reader.remove(call, config_maps(), {space, "c"}, {}); })), denied("delete"));
  json replaced = client.create(call, config_maps(), object);
  EXPECT_EQ(right_of(failure_of([&] { reader.replace(call, config_maps(), replaced); })), denied("update"));
  const kube::Resource pods{"pod", "/api/v1", "pods", "Pod", true, {}, {}};
  json pod = {{"metadata", {{"name", "p"}, {"namespace", space}, {"resourceVersion", "1"}}}};
  EXPECT_EQ(failure_of([&] { reader.replace(call, pods, pod, kube::Part::kStatus); }).right,
            "update pods/status in namespace " + space);

  json invalid = object;
  invalid["metadata"]["name"] = "Not A Name";
  const auto refused = failure_of([&] { client.create(call, config_maps(), invalid); });
  EXPECT_EQ(refused.code, DRIFTD_INVALID);
  EXPECT_THAT(refused.what(), HasSubstr("metadata.name"));
  invalid["metadata"] = {{"name", "c"}, {"namespace", "no-such-namespace"}};
  EXPECT_EQ(failure_of([&] { client.create(call, config_maps(), invalid); }).code, DRIFTD_NOT_FOUND);
  const kube::Resource unknown{"nothing", "/apis/nothing.test/v1", "nothings", "Nothing", true, {}, {}};
  EXPECT_EQ(failure_of([&] { client.create(call, unknown, object); }).code, DRIFTD_UNSUPPORTED);
  EXPECT_EQ(failure_of([&] { client.get(call, unknown, {space, "x"}); }).code, DRIFTD_UNSUPPORTED);
}

}  // namespace
}  // namespace driftd::test
