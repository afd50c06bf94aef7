// SPDX-License-Identifier: Apache-2.0
// Jobs of CronJobs on a real API server: they are left out, and nobody can leave out a Job by a name in it.
#include <atomic>
#include <future>

#include "cluster.hpp"

namespace driftd::test {
namespace {

struct K8sJobs : Cluster {
  K8sJobs() : space(fresh_namespace()), path("/apis/batch/v1/namespaces/" + space + "/") {}

  static json spec() {
    const json container = {{"name", "main"}, {"image", "example.org/x:1"}};
    return {{"template", {{"spec", {{"restartPolicy", "Never"}, {"containers", json::array({container})}}}}}};
  }
  /// Creates a CronJob and returns its uid.
  std::string cron_job(const std::string& name) const {
    const json made = kube().create(
        path + "cronjobs",
        {{"metadata", {{"name", name}}}, {"spec", {{"schedule", "0 1 * * *"}, {"jobTemplate", {{"spec", spec()}}}}}});
    return text(made, "uid");
  }
  /// Creates a Job; with a uid it says that the CronJob `x` with that uid controls it.
  void job(const std::string& name, const std::string& uid = {}) const {
    json object = {{"metadata", {{"name", name}}}, {"spec", spec()}};
    if (!uid.empty()) {
      object["metadata"]["ownerReferences"] = json::array(
          {{{"apiVersion", "batch/v1"}, {"kind", "CronJob"}, {"name", "x"}, {"uid", uid}, {"controller", true}}});
    }
    kube().create(path + "jobs", object);
  }
  void change(const std::string& name) const { kube().patch(path + "jobs/" + name, {{"spec", {{"parallelism", 2}}}}); }
  ProviderProbe jobs(const json& more = json::object()) const {
    json settings = with(kube().settings({space}), {{"include", {"job"}}});
    settings.update(more);
    return probe(settings);
  }

  const std::string space, path;
  static constexpr const char* kNobody = "11111111-2222-3333-4444-555555555555";
};

/// Whatever is in it came from the CronJob.
TEST_F(K8sJobs, AJobThatACronJobMadeIsNeitherListedWatchedNorRead) {
  job("made", cron_job("x"));
  job("own");
  ProviderProbe k8s = jobs();
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.complete.at("job"), 1u);
  EXPECT_NE(got.find("job", space + "/own"), nullptr) << render(got);
  EXPECT_EQ(got.find("job", space + "/made"), nullptr);
  EXPECT_NE(k8s.read({{"job", space + "/made"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
  const Collected watched = watch(k8s, "",
                                  {{[&] {
                                      change("made");
                                      change("own");
                                    },
                                    [&](const Collected& w) { return w.find("job", space + "/own") != nullptr; }}});
  EXPECT_EQ(watched.find("job", space + "/made"), nullptr);
}

/// The CronJob was deleted, or never was, or is another one, or is of another namespace.
TEST_F(K8sJobs, AJobWhoseControllerDoesNotExistIsOneOfItsOwn) {
  const std::string other = fresh_namespace();
  cron_job("x");
  const json elsewhere = kube().create(
      "/apis/batch/v1/namespaces/" + other + "/cronjobs",
      {{"metadata", {{"name", "x"}}}, {"spec", {{"schedule", "0 1 * * *"}, {"jobTemplate", {{"spec", spec()}}}}}});
  job("forged", kNobody);
  job("elsewhere", text(elsewhere, "uid"));
  for (const auto& included : {json{"job"}, json{"job", "cron_job"}}) {
    ProviderProbe k8s = jobs({{"namespaces", {space, other}}, {"include", included}});
    const Collected got = k8s.refresh();
    EXPECT_EQ(got.complete.at("job"), 2u) << render(got);
    EXPECT_NE(got.find("job", space + "/forged"), nullptr) << render(got);
    EXPECT_NE(got.find("job", space + "/elsewhere"), nullptr) << render(got);
    EXPECT_NE(k8s.read({{"job", space + "/forged"}}).find("job", space + "/forged"), nullptr);
  }
}

/// Whatever is listed first, the CronJobs or the Jobs, both may be made between the two lists.
TEST_F(K8sJobs, AJobOfACronJobThatIsMadeDuringARefreshIsNotListed) {
  std::atomic<int> made = 0;
  auto making = std::async(std::launch::async, [&] {
    for (; made < 100; ++made) job("made-" + std::to_string(made), cron_job("every-" + std::to_string(made)));
  });
  ProviderProbe k8s = jobs();
  std::size_t listed = 0;
  while (made < 100 && making.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    listed += k8s.refresh().complete.at("job");
  making.get();
  EXPECT_EQ(listed, 0u);
}

TEST_F(K8sJobs, TheWatchLooksForTheControllerOfAJobToo) {
  cron_job("y");
  ProviderProbe k8s = jobs();
  k8s.refresh();
  const Collected watched =
      watch(k8s, "",
            {{[&] {
                job("made", cron_job("x"));
                job("forged", kNobody);
              },
              [&](const Collected& w) { return w.find("job", space + "/forged") != nullptr; }},
             {[&] { kube().remove(path + "jobs/forged?propagationPolicy=Background"); },
              [&](const Collected& w) {
                return std::any_of(w.records.begin(), w.records.end(), [](const auto& each) { return each.tombstone; });
              }}});
  EXPECT_EQ(watched.find("job", space + "/made"), nullptr) << render(watched);
}

/// It is not known then which Jobs a CronJob made, so none of these is new and none is gone.
TEST_F(K8sJobs, WithoutTheRightToCronJobsThoseThatNameOneAreNotCompared) {
  job("forged", kNobody);
  job("own");
  const json rule = {{"apiGroups", {"batch"}}, {"resources", {"jobs"}}, {"verbs", {"get", "list", "watch"}}};
  const TempDir dir;
  ProviderProbe k8s = jobs({{"token_file", dir.write("token", kube().account(space, "older", json::array({rule})))}});
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.complete.at("job"), 1u) << render(got);
  EXPECT_NE(got.find("job", space + "/own"), nullptr);
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr) << render(got);
  EXPECT_EQ(got.diagnostic(DRIFTD_DENIED)->right, "list cronjobs.batch in namespace " + space);
  const Collected read = k8s.read({{"job", space + "/forged"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << render(read);
  ASSERT_NE(read.diagnostic(DRIFTD_DENIED), nullptr) << render(read);
  EXPECT_EQ(read.diagnostic(DRIFTD_DENIED)->right, "get cronjobs.batch in namespace " + space);
}

}  // namespace
}  // namespace driftd::test
