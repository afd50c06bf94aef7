// SPDX-License-Identifier: Apache-2.0
// kube::Reflector against a real API server: lists, watches, and what comes between them.
#include <chrono>

#include "following.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct KubeReflector : KubeClient {
  using Names = std::vector<std::string>;
  /// Both types in one namespace.
  static std::vector<kube::Followed> two_types(const std::string& space) {
    return {{config_maps(), {space}}, {secrets(), {space}}};
  }
  static bool comes(const Following& following, const std::string& plural, const std::string& name) {
    return eventually([&] {
      const auto names = following.names(plural);
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  }
  static bool fails(const Following& following, const std::string& plural, driftd_status code) {
    const auto failures = following.failures(plural);
    return std::any_of(failures.begin(), failures.end(), [&](const auto& each) { return each.code == code; });
  }
  static void take_prism_away() {
    const std::string definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/prismbackends.prism.io";
    ASSERT_TRUE(kube().remove_wholly(definition));
  }
  static bool goes(const Following& following, const std::string& plural, const std::string& name) {
    return eventually([&] {
      const auto names = following.names(plural);
      return std::find(names.begin(), names.end(), name) == names.end();
    });
  }
};

TEST_F(KubeReflector, ListsTwoTypesAndThenFollowsTheirChanges) {
  const std::string space = fresh_namespace();
  make(config_maps(), space, "first");
  make(secrets(), space, "s-first");
  Following following(connection(), two_types(space));
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("first"));
  EXPECT_THAT(following.names("secrets"), ElementsAre("s-first"));
  const std::string uid = make(config_maps(), space, "second").at("metadata").at("uid");
  make(secrets(), space, "s-second");
  EXPECT_TRUE(comes(following, "configmaps", "second"));
  EXPECT_TRUE(comes(following, "secrets", "s-second"));
  kube().patch(path(config_maps(), space, "second"), {{"data", {{"a", "b"}}}});
  EXPECT_TRUE(eventually([&] { return following.history("configmaps", "second").size() == 2; }));
  kube().remove(path(config_maps(), space, "second"));
  EXPECT_TRUE(goes(following, "configmaps", "second"));
  EXPECT_THAT(following.history("configmaps", "second"), ElementsAre("+" + uid, "+" + uid, "-" + uid));
  EXPECT_EQ(following.last_gone().at("data").at("a"), "b") << "the object as it was";
  EXPECT_EQ(following.synced("configmaps"), 1);
  following.stop();
  EXPECT_EQ(following.ended(), "") << "a cancelled call is no failure";
}

TEST_F(KubeReflector, SelectorsChooseWhatIsFollowed) {
  const std::string space = fresh_namespace();
  make(config_maps(), space, "before", {{"app", "mine"}});
  make(config_maps(), space, "other");
  kube::Resource mine = config_maps(), one = secrets();
  mine.label_selector = "app=mine";
  one.field_selector = "metadata.name=this";
  Following following(connection(), {{mine, {space}}, {one, {}}});
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  make(secrets(), space, "that");
  make(secrets(), space, "this");
  make(config_maps(), space, "another");
  make(config_maps(), space, "after", {{"app", "mine"}});
  EXPECT_TRUE(comes(following, "configmaps", "after"));
  EXPECT_TRUE(comes(following, "secrets", "this"));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("after", "before"));
  EXPECT_THAT(following.names("secrets"), ElementsAre("this"));
  kube().patch(path(config_maps(), space, "before"), {{"metadata", {{"labels", {{"app", nullptr}}}}}});
  EXPECT_TRUE(goes(following, "configmaps", "before")) << "it no longer matches";
}

TEST_F(KubeReflector, ACutWatchGoesOnWithoutAList) {
  const std::string space = fresh_namespace();
  Relay relay(kube().port());
  Following following(connection(relay), two_types(space));
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  make(config_maps(), space, "before");
  ASSERT_TRUE(comes(following, "configmaps", "before"));
  relay.cut_now();
  const std::string uid = make(config_maps(), space, "after").at("metadata").at("uid");
  kube().remove(path(config_maps(), space, "before"));
  EXPECT_TRUE(comes(following, "configmaps", "after"));
  EXPECT_TRUE(goes(following, "configmaps", "before"));
  EXPECT_THAT(following.history("configmaps", "after"), ElementsAre("+" + uid)) << "once";
  EXPECT_EQ(following.synced("configmaps"), 1) << "no second list";
  EXPECT_GT(relay.cuts(), 0);
}

TEST_F(KubeReflector, GoesOnThroughARestartOfTheServer) {
  const std::string space = fresh_namespace();
  Following following(connection(), two_types(space));
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  make(config_maps(), space, "before");
  ASSERT_TRUE(comes(following, "configmaps", "before"));
  kube().kill();
  EXPECT_TRUE(eventually([&] { return !following.failures("configmaps").empty(); }));
  kube().start();
  make(config_maps(), space, "after");
  make(secrets(), space, "s-after");
  EXPECT_TRUE(comes(following, "configmaps", "after"));
  EXPECT_TRUE(comes(following, "secrets", "s-after"));
  EXPECT_TRUE(eventually([&] { return following.recovered("configmaps") == 1; }));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("after", "before"));
  EXPECT_EQ(following.failures("configmaps").size(), 1u) << "reported once, although it is tried again and again";
  EXPECT_EQ(following.failures("configmaps").front().code, DRIFTD_UNAVAILABLE);
}

/// While the watch is cut, etcd forgets the versions since, and the new watch cache of the server begins after them.
TEST_F(KubeReflector, ACompactionLeadsToAListThatShowsWhatWentAndWhatWasMadeAgain) {
  const std::string space = fresh_namespace();
  make(config_maps(), space, "stays");
  const std::string gone = make(config_maps(), space, "gone").at("metadata").at("uid");
  const std::string first = make(config_maps(), space, "again").at("metadata").at("uid");
  Relay relay(kube().port());
  Following following(connection(relay), two_types(space));
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  relay.close();
  kube().remove(path(config_maps(), space, "gone"));
  kube().remove(path(config_maps(), space, "again"));
  const std::string second = make(config_maps(), space, "again").at("metadata").at("uid");
  make(config_maps(), space, "new");
  kube().compact();
  kube().kill();
  kube().start();
  make(config_maps(), space, "last");  // the watch cache begins here
  relay.open();
  EXPECT_TRUE(comes(following, "configmaps", "last"));
  EXPECT_TRUE(eventually([&] { return following.synced("configmaps") == 2; }));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("again", "last", "new", "stays"));
  EXPECT_THAT(following.history("configmaps", "gone"), ElementsAre("+" + gone, "-" + gone));
  EXPECT_THAT(following.history("configmaps", "again"), ElementsAre("+" + first, "-" + first, "+" + second));
  make(config_maps(), space, "more");
  EXPECT_TRUE(comes(following, "configmaps", "more")) << "and it is watched again";
}

TEST_F(KubeReflector, AMissingRightIsNamedTriedAgainAndStopsNoOtherType) {
  const std::string space = fresh_namespace();
  const std::string roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space + "/roles/half";
  const auto rule = [](const char* plural) {
    return json{{"apiGroups", {""}}, {"resources", {plural}}, {"verbs", {"get", "list", "watch"}}};
  };
  Relay relay(kube().port());
  kube::Connection as_account = connection(relay);
  as_account.identification.token = kube().account(space, "half", json::array({rule("configmaps")}));
  make(secrets(), space, "hidden");
  Following following(as_account, two_types(space));
  ASSERT_TRUE(eventually([&] { return following.synced("configmaps") == 1; }));
  ASSERT_TRUE(eventually([&] { return !following.failures("secrets").empty(); }));
  const sdk::Failure denied = following.failures("secrets").front();
  EXPECT_EQ(denied.code, DRIFTD_DENIED) << denied.what();
  EXPECT_EQ(denied.right, "list secrets in namespace " + space);
  make(config_maps(), space, "c");
  EXPECT_TRUE(comes(following, "configmaps", "c"));
  EXPECT_FALSE(following.has_synced());

  kube().patch(roles, {{"rules", json::array({rule("configmaps"), rule("secrets")})}});
  EXPECT_TRUE(comes(following, "secrets", "hidden"));
  EXPECT_TRUE(eventually([&] { return following.recovered("secrets") == 1; }));
  EXPECT_TRUE(following.has_synced());

  kube().patch(roles, {{"rules", json::array({rule("secrets")})}});
  const std::string other = "/api/v1/namespaces/" + space + "/configmaps";
  ASSERT_TRUE(
      eventually([&] { return kube().request_as(as_account.identification.token, "GET", other).status == 403; }));
  relay.cut_now();  // the server lets a watch go on that was allowed when it began
  EXPECT_TRUE(eventually([&] { return fails(following, "configmaps", DRIFTD_DENIED); }));
  EXPECT_EQ(following.failures("configmaps").back().right, "list configmaps in namespace " + space);
  make(config_maps(), space, "meanwhile");
  make(secrets(), space, "s");
  EXPECT_TRUE(comes(following, "secrets", "s"));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("c")) << "what is hidden is not gone";
  kube().patch(roles, {{"rules", json::array({rule("configmaps"), rule("secrets")})}});
  EXPECT_TRUE(comes(following, "configmaps", "meanwhile"));
}

TEST_F(KubeReflector, ATypeThatIsNotServedYetIsFollowedFromWhenItIs) {
  const std::string space = fresh_namespace();
  take_prism_away();
  Following following(connection(), {{prism_backends(), {}}, {config_maps(), {space}}});
  EXPECT_TRUE(eventually([&] { return fails(following, "prismbackends", DRIFTD_UNSUPPORTED); }));
  EXPECT_TRUE(eventually([&] { return following.synced("configmaps") == 1; }));
  kube().install_prism();
  kube().create(path(prism_backends(), space),
                {{"apiVersion", "prism.io/v1alpha1"}, {"kind", "PrismBackend"}, {"metadata", {{"name", "one"}}}});
  EXPECT_TRUE(comes(following, "prismbackends", "one"));
  EXPECT_TRUE(eventually([&] { return following.has_synced(); }));
}

TEST_F(KubeReflector, ATypeThatIsTakenAwayAndComesBackIsFollowedAgain) {
  const std::string space = fresh_namespace();
  const auto create = [&](const std::string& name) {
    return kube().create(
        path(prism_backends(), space),
        {{"apiVersion", "prism.io/v1alpha1"}, {"kind", "PrismBackend"}, {"metadata", {{"name", name}}}});
  };
  kube().install_prism();
  create("first");
  Following following(connection(), {{prism_backends(), {}}});
  ASSERT_TRUE(comes(following, "prismbackends", "first"));
  kube().remove(path(prism_backends(), space, "first"));
  ASSERT_TRUE(goes(following, "prismbackends", "first"));
  take_prism_away();
  ASSERT_TRUE(eventually([&] { return fails(following, "prismbackends", DRIFTD_UNSUPPORTED); }));
  kube().install_prism();
  create("second");
  EXPECT_TRUE(comes(following, "prismbackends", "second"));
  EXPECT_THAT(following.names("prismbackends"), Not(Contains("first")));
}

/// The endpoint leads to another cluster for a time: what is there is not what was followed, and nothing is gone.
TEST_F(KubeReflector, WhileAnotherClusterAnswersNothingOfItIsHandedOut) {
  const std::string space = fresh_namespace();
  make(config_maps(), space, "mine");
  KubeServer other;
  other.create_namespace(space);
  other.create(path(config_maps(), space), {{"metadata", {{"name", "foreign"}}}});
  Relay relay(kube().port());
  kube::Connection both = connection(relay);
  both.tls.verify = false;  // each has a CA of its own
  Following following(both, two_types(space));
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  following.run_again();
  make(config_maps(), space, "seen");
  ASSERT_TRUE(comes(following, "configmaps", "seen")) << "it goes on where it was";
  EXPECT_EQ(following.synced("configmaps"), 1) << "without a list";
  relay.point_to(other.port());
  relay.cut_now();
  EXPECT_TRUE(eventually([&] {
    const auto failures = following.failures("secrets");
    return std::any_of(failures.begin(), failures.end(), [](const sdk::Failure& each) {
      return std::string(each.what()).find("another cluster answers") != std::string::npos;
    });
  }));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("mine", "seen"));
  relay.point_to(kube().port());
  relay.cut_now();
  make(config_maps(), space, "later");
  EXPECT_TRUE(comes(following, "configmaps", "later"));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("later", "mine", "seen"));
  EXPECT_EQ(following.ended(), "");
}

TEST_F(KubeReflector, ObjectsThatComeAndGoLeaveNothingBehind) {
  const std::string space = fresh_namespace();
  Following following(connection(), two_types(space));
  ASSERT_TRUE(eventually([&] { return following.has_synced(); }));
  for (int i = 0; i < 100; ++i) make(config_maps(), space, "c-" + std::to_string(i));
  kube().remove(path(config_maps(), space));  // the collection
  make(config_maps(), space, "last");
  EXPECT_TRUE(comes(following, "configmaps", "last"));
  EXPECT_THAT(following.names("configmaps"), ElementsAre("last"));
  EXPECT_EQ(following.history("configmaps", "c-99").size(), 2u);
}

}  // namespace
}  // namespace driftd::test
