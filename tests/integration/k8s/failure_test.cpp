// SPDX-License-Identifier: Apache-2.0
// What can go wrong between the provider and the server: refused credentials, cut connections, and a
// server that is stopped, paused, or has compacted its history.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <regex>
#include <stdexcept>
#include <utility>

#include "failure.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

TEST_F(K8sFailure, AListCutInMidPageIsNotComplete) {
  const std::string space = fresh_namespace();
  fill(space, 120, 4000);
  for (const bool streams : {false, true}) {
    Relay relay(kube().port());
    ProviderProbe k8s = probe(with(
        only_secrets(space),
        {{"server", "https://127.0.0.1:" + std::to_string(relay.port())}, {"page", 50}, {"streaming_lists", streams}}));
    relay.cut_after(400'000);
    const Collected cut = k8s.refresh();
    EXPECT_EQ(cut.status, DRIFTD_UNAVAILABLE) << render(cut);
    EXPECT_GT(cut.records.size(), 0u);
    EXPECT_LT(cut.records.size(), 120u);
    EXPECT_TRUE(cut.complete.empty());
    relay.cut_after(0);
    const Collected whole = k8s.refresh();
    ASSERT_EQ(whole.complete.count("secret"), 1u) << render(whole);
    EXPECT_EQ(whole.complete.at("secret"), 120u);
    EXPECT_EQ(whole.records.size(), 120u);
  }
}

TEST_F(K8sFailure, AStreamThatTakesLongerThanARequestMayIsReadInPagesFromThenOn) {
  const std::string space = fresh_namespace();
  fill(space, 120, 4000);
  Relay relay(kube().port());
  ProviderProbe k8s = probe(with(only_secrets(space), {{"server", "https://127.0.0.1:" + std::to_string(relay.port())},
                                                       {"page", 20},
                                                       {"streaming_lists", true},
                                                       {"call_timeout_ms", 1500}}));
  relay.slow(200'000);
  const Collected slow = k8s.refresh();
  EXPECT_TRUE(slow.complete.empty()) << render(slow);
  const Collected whole = k8s.refresh();
  ASSERT_EQ(whole.complete.count("secret"), 1u) << render(whole);
  EXPECT_EQ(whole.complete.at("secret"), 120u);
}

/// All pages show the state at the time of the first. If the records of the last page counted as newer than a change
/// that was made before that page came, the event of the watch for this change would be dropped.
TEST_F(K8sFailure, AListInPagesIsNotNewerThanWhatItShows) {
  constexpr int kPages = 100;
  const std::string space = fresh_namespace(), name = "s-99";  // the last in the list
  fill(space, kPages);
  Relay relay(kube().port());
  ProviderProbe k8s = probe(
      with(only_secrets(space),
           {{"server", "https://127.0.0.1:" + std::to_string(relay.port())}, {"page", 1}, {"streaming_lists", false}}));
  ASSERT_EQ(k8s.refresh().status, DRIFTD_OK);
  // So the pages take some seconds: a busy machine delays the writer, too.
  relay.slow(100'000);
  struct Change {
    std::int64_t done_ns;  ///< the server had answered; while it works, a list may be sent that does not show it
    std::string version;
  };
  std::vector<Change> changes;
  std::atomic<bool> writes = false, listed = false;
  auto writer = std::async(std::launch::async, [&] {
    while (!listed || changes.empty()) {
      kube().patch(secrets(space) + "/" + name, {{"stringData", {{"value", std::to_string(changes.size())}}}});
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      const std::int64_t done = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
      changes.push_back({done, text(kube().get(secrets(space) + "/" + name), "resourceVersion")});
      writes = true;
    }
  });
  const bool begun = eventually([&] { return writes.load(); });
  const Collected got = k8s.refresh();
  listed = true;
  writer.get();
  ASSERT_TRUE(begun);
  ASSERT_EQ(got.complete.count("secret"), 1u) << render(got);
  const sdk::Record* last = got.find("secret", space + "/" + name);
  ASSERT_NE(last, nullptr) << render(got);
  const auto shows = [&](const Change& change) { return change.version == last->version; };
  const auto shown_one = std::find_if(changes.begin(), changes.end(), shows);
  // the first change that the list does not show
  const auto hidden = shown_one == changes.end() ? changes.begin() : std::next(shown_one);
  ASSERT_GE(changes.end() - hidden, 2) << "nothing changed while the pages came";
  EXPECT_LT(last->observed_ns, hidden->done_ns);
}

TEST_F(K8sFailure, ACutWatchIsTakenUpWhereItWas) {
  const std::string space = fresh_namespace();
  Relay relay(kube().port());
  ProviderProbe k8s =
      probe(with(only_secrets(space), {{"server", "https://127.0.0.1:" + std::to_string(relay.port())}}));
  ASSERT_EQ(k8s.refresh().status, DRIFTD_OK);
  const auto seen = [&](int i) {
    return [&, i](const Collected& got) { return got.find("secret", space + "/t-" + std::to_string(i)) != nullptr; };
  };
  const Collected got = watch(k8s, "",
                              {{[&] {
                                  kube().create_secret(space, "t-0", {{"a", "b"}});
                                },
                                seen(0)},
                               {[&] {
                                  relay.cut_now();
                                  kube().create_secret(space, "t-1", {{"a", "b"}});
                                },
                                seen(1)}});
  EXPECT_EQ(got.records.size(), 2u);
  EXPECT_GT(relay.cuts(), 0);
}

TEST_F(K8sFailure, AllKindsInAllNamespacesAreWatchedOverOneConnection) {
  const std::vector<std::string> spaces = {fresh_namespace(), fresh_namespace(), fresh_namespace()};
  Relay relay(kube().port());
  ProviderProbe k8s =
      probe(with(kube().settings(spaces), {{"server", "https://127.0.0.1:" + std::to_string(relay.port())}}));
  ASSERT_EQ(k8s.refresh().status, DRIFTD_OK);
  const int before = relay.connections();
  const auto watches = [&] {
    return kube().counted("apiserver_longrunning_requests", {"verb=\"WATCH\"", "scope=\"namespace\""});
  };
  const int others = watches();
  constexpr int kWatches = 60;  // twenty kinds in three namespaces; PrismBackend and Gateways are not installed
  int most = 0;
  watch(k8s, "",
        {{[&] {
            kube().create_secret(spaces[2], "x", {{"a", "b"}});
          },
          [&](const Collected& got) {
            most = std::max(most, watches() - others);
            return got.find("secret", spaces[2] + "/x") != nullptr && most >= kWatches;
          }}});
  EXPECT_EQ(most, kWatches);
  EXPECT_LE(relay.connections() - before, 4)
      << "one for all watches, one for their other requests, and for each of the two one that asks for the "
         "identity of the cluster";
}

TEST_F(K8sFailure, TheTokenFileIsReadAnewWhenItsTokenIsRefused) {
  const std::string space = fresh_namespace();
  const TempDir dir;
  const std::string file = dir.write("token", "not-a-token");
  ProviderProbe k8s = probe(with(only_secrets(space), {{"token_file", file}}));
  EXPECT_EQ(k8s.refresh().status, DRIFTD_UNAUTHENTICATED);
  EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_DEGRADED);
  dir.write("token", kube().admin_token() + "\n");
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK) << render(got);
}

TEST_F(K8sFailure, AClientsCertificateIsAnIdentityToo) {
  const std::string space = fresh_namespace();
  json settings = only_secrets(space);
  settings.erase("token_file");
  settings["tls"]["certificate_file"] = kube().client_certificate();
  ProviderProbe k8s = probe(settings);
  const Collected got = k8s.refresh();
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr) << render(got);
  EXPECT_THAT(got.diagnostic(DRIFTD_DENIED)->text, HasSubstr("\"certified\""));
}

TEST_F(K8sFailure, AnotherCaOrAnotherNameIsNotBelieved) {
  json settings = kube().settings({"default"});
  settings["tls"]["ca_file"] = kube().file("other.pem");
  const Collected untrusted = probe(settings).refresh();
  EXPECT_EQ(untrusted.status, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(untrusted.diagnostics.at(0).text, HasSubstr("not trusted"));
  settings = kube().settings({"default"});
  settings["tls"]["server_name"] = "elsewhere.test";
  EXPECT_EQ(probe(settings).refresh().status, DRIFTD_UNAVAILABLE);
  settings["tls"]["server_name"] = "kube.test";
  EXPECT_EQ(probe(settings).refresh().status, DRIFTD_OK);
}

TEST_F(K8sFailure, AKubeconfigIsReadAndItsProgramsAreRefused) {
  ProviderProbe k8s = probe({{"kubeconfig", kube().kubeconfig()}, {"namespaces", {"default"}}});
  EXPECT_EQ(k8s.refresh().status, DRIFTD_OK);
  EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_UP);
  EXPECT_THAT(k8s.health().health.server_version, HasSubstr("v1."));
  EXPECT_EQ(k8s.health().health.system_identity.size(), 36u);
  const TempDir dir;
  const std::string program = dir.file("ran");
  const std::string exec =
      "user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/touch, args: [" + program + "]}}";
  const std::string with_program = dir.write(
      "kubeconfig", std::regex_replace(read_file(kube().kubeconfig()), std::regex("user: \\{token: [^}]*\\}"), exec));
  EXPECT_THAT(([&] {
                probe({{"kubeconfig", with_program}, {"namespaces", {"default"}}});
              }),
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("${exec:/bin/touch " + program + "}")));
  EXPECT_FALSE(std::filesystem::exists(program));
}

TEST_F(K8sFailure, AServerThatIsStoppedOrPausedIsDownAndDeletesNothing) {
  const std::string space = fresh_namespace();
  fill(space, 1);
  ProviderProbe k8s = probe(with(only_secrets(space), {{"call_timeout_ms", 1500}}));
  k8s.refresh_ok();
  kube().pause();
  EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_DOWN);
  const Collected paused = k8s.refresh();
  EXPECT_EQ(paused.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(paused.complete.empty());
  const Collected read = k8s.read({{"secret", space + "/s-0"}});
  EXPECT_EQ(read.status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  kube().resume();
  kube().stop();
  EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_DOWN);
  EXPECT_EQ(k8s.refresh().status, DRIFTD_UNAVAILABLE);
  kube().start();
  EXPECT_EQ(k8s.refresh_ok().complete.count("secret"), 1u);
}

TEST_F(K8sFailure, AWatchGoesOnThroughARestartAndIsExpiredAfterACompaction) {
  std::string space;
  std::unique_ptr<ProviderProbe> k8s;
  Collected through;
  const auto make = [&](const std::string& name) { kube().create_secret(space, name, {{"a", "b"}}); };
  const auto seen = [&](const std::string& name) {
    return [&, name](const Collected& got) { return got.find("secret", space + "/" + name) != nullptr; };
  };
  // Returns false if the restart expired the watch, which happens if anything was written before the watch cache of the
  // new server began. Then nothing may be lost.
  const auto goes_on = [&] {
    space = fresh_namespace();
    k8s.reset(new ProviderProbe(probe(only_secrets(space))));
    EXPECT_EQ(k8s->refresh().status, DRIFTD_OK);
    bool begun = false, restarted = false;
    through = k8s->watch(
        "",
        [&](const Collected& got) {
          if (!std::exchange(begun, true)) make("before");
          if (seen("before")(got) && !std::exchange(restarted, true)) {
            kube().kill();
            kube().start();
            make("after");
          }
          return seen("after")(got);
        },
        std::chrono::seconds(60));
    EXPECT_TRUE(restarted) << render(through);
    if (through.status != DRIFTD_CURSOR_EXPIRED) return true;
    EXPECT_EQ(k8s->refresh().complete["secret"], 2u) << "the list has what the watch missed";
    return false;
  };
  EXPECT_TRUE(one_of(5, goes_on));
  EXPECT_EQ(through.records.size(), 2u) << "no change may be missed or come twice; " << render(through);
  make("unseen");
  kube().compact();
  kube().kill();
  kube().start();
  make("last");  // the watch cache begins here
  const Collected expired = k8s->watch(
      through.cursor, [](const Collected&) { return false; }, std::chrono::seconds(30));
  EXPECT_EQ(expired.status, DRIFTD_CURSOR_EXPIRED) << render(expired);
  const Collected again = k8s->refresh();
  EXPECT_EQ(again.complete.at("secret"), 4u);
  const Collected on = watch(*k8s, "", {{[&] { make("more"); }, seen("more")}});
  EXPECT_EQ(on.records.size(), 1u);
}

/// The host has what the last list showed. If the watch pushed it again, because the cursor is older, the host would
/// see changes that nobody made.
TEST_F(K8sFailure, AWatchWithACursorOfBeforeTheLastListBeginsBehindTheList) {
  const std::string space = fresh_namespace();
  kube().create_secret(space, "s", {{"value", "first"}});
  kube().create_secret(space, "gone", {{"value", "first"}});
  const json settings = with(kube().settings({space}), {{"include", {"secret"}}});
  ProviderProbe k8s = probe(settings), another = probe(settings);
  const std::string old = k8s.refresh().cursor, also_old = another.refresh().cursor;
  kube().patch(secrets(space) + "/s", {{"stringData", {{"value", "second"}}}});
  kube().remove(secrets(space) + "/gone");
  const Collected listed = k8s.refresh();
  ASSERT_NE(listed.cursor, old);
  ASSERT_EQ(listed.complete.at("secret"), 1u) << render(listed);
  const auto later = [&](const Collected& got) { return got.find("secret", space + "/later") != nullptr; };
  const Collected watched = watch(k8s, old, {{[&] { kube().create_secret(space, "later", {{"a", "b"}}); }, later}});
  EXPECT_EQ(watched.records.size(), 1u) << render(watched);
  const Collected all = watch(another, also_old, {{[] {}, later}});
  EXPECT_EQ(all.records.size(), 3u) << "a provider that made no list since then pushes all changes since the cursor: "
                                    << render(all);
}

/// After a restore of etcd the server counts again from an earlier version.
TEST_F(K8sFailure, AWatchFromAVersionThatTheServerDoesNotHaveYetIsExpired) {
  const std::string space = fresh_namespace();
  ProviderProbe k8s = probe(only_secrets(space));
  const Collected listed = k8s.refresh();
  json ahead = json::parse(listed.cursor);
  for (auto& [key, version] : ahead.at("at").items())
    version = std::to_string(std::stoll(version.get<std::string>()) + 1'000'000);
  bool made = false, hidden = false;
  const Collected watched = k8s.watch(
      ahead.dump(), [&](const Collected&) { return hidden; }, std::chrono::seconds(20),
      [&] {
        if (!std::exchange(made, true)) kube().create_secret(space, "unseen", {{"a", "b"}});
        hidden = hidden || k8s.refresh(listed.cursor).unchanged;
      });
  EXPECT_FALSE(hidden) << "the new Secret is neither pushed nor listed";
  EXPECT_EQ(watched.status, DRIFTD_CURSOR_EXPIRED) << render(watched);
}

TEST_F(K8sFailure, AnUnbrokenWatchAnswersForTheListWithoutARequest) {
  const std::string space = fresh_namespace();
  ProviderProbe k8s = probe(only_secrets(space));
  const Collected listed = k8s.refresh();
  EXPECT_FALSE(k8s.refresh(listed.cursor).unchanged) << "no watch runs yet";
  const Collected again = k8s.refresh();
  std::atomic<bool> unchanged{false};
  k8s.watch(
      "", [&](const Collected&) { return unchanged.load(); }, std::chrono::seconds(20),
      [&] {
        if (!unchanged) unchanged = k8s.refresh(again.cursor).unchanged;
      });
  EXPECT_TRUE(unchanged);
  EXPECT_FALSE(k8s.refresh(again.cursor).unchanged) << "the watch has ended";
}

}  // namespace
}  // namespace driftd::test
