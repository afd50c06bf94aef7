// SPDX-License-Identifier: Apache-2.0
// Parsers: base64, gzip, lists, lines, kubeconfigs, cursors.
#include <gmock/gmock.h>
#include <zlib.h>

#include "failure.hpp"
#include "k8s/kinds.hpp"
#include "k8s/resource_versions.hpp"
#include "k8s/settings.hpp"
#include "kube/base64.hpp"
#include "kube/list_splitter.hpp"
#include "support/process.hpp"

namespace driftd::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(K8sBase64, ReadsPaddedUnpaddedAndWrappedTextAndNothingElse) {
  EXPECT_EQ(kube::decode_base64("aGk="), "hi");
  EXPECT_EQ(kube::decode_base64("aGk"), "hi");
  EXPECT_EQ(kube::decode_base64("aG\nk="), "hi");
  EXPECT_EQ(kube::decode_base64(""), "");
  EXPECT_EQ(kube::decode_base64("/w=="), "\xff");
  for (const char* bad : {"a", "aGk=a", "aG k", "a===", "aGk*", "aGk=="})
    EXPECT_EQ(kube::decode_base64(bad), std::nullopt) << bad;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(K8sGzip, UnpacksUpToTheLimitAndRefusesWhatIsCut) {
  const std::string text(100'000, 'a'), packed = gzip(text);
  EXPECT_EQ(kube::gunzip(packed, 100'000, "x"), text);
  EXPECT_EQ(failure([&] { kube::gunzip(packed, 99'999, "x"); }).code, DRIFTD_BUDGET);
  EXPECT_EQ(failure([&] { kube::gunzip(packed.substr(0, packed.size() / 2), 1 << 20, "x"); }).code, DRIFTD_CORRUPT);
  EXPECT_EQ(failure([&] { kube::gunzip("nothing", 1 << 20, "x"); }).code, DRIFTD_CORRUPT);
}

TEST(K8sItems, EachElementIsHandedOutHoweverTheBytesArrive) {
  const std::string list =
      R"({"kind":"items","metadata":{"items":[{"no":1}],"continue":"c\"]}"},"items":[{"a":[1,{"b":"]}\\"}]},
    {"c":"\"{"}],"z":[{"d":1}]})";
  for (const std::size_t step : {1u, 2u, 7u, 1000u}) {
    std::vector<std::string> items;
    kube::ItemSplitter splitter([&](const std::string& item) { items.push_back(item); }, 1000);
    for (std::size_t at = 0; at < list.size(); at += step) splitter.feed(std::string_view(list).substr(at, step));
    EXPECT_THAT(items, ElementsAre(R"({"a":[1,{"b":"]}\\"}]})", R"({"c":"\"{"})")) << step;
    EXPECT_THAT(splitter.rest(), HasSubstr(R"("items":[)"));
    EXPECT_THAT(splitter.rest(), HasSubstr(R"("z":[{"d":1}])"));
  }
}

TEST(K8sItems, AListThatEndsEarlyIsCorruptAndAnElementHasALimit) {
  kube::ItemSplitter cut([](const std::string&) {}, 1000);
  cut.feed(R"({"items":[{"a":1},{"b")");
  EXPECT_EQ(failure([&] { cut.rest(); }).code, DRIFTD_CORRUPT);
  kube::ItemSplitter small([](const std::string&) {}, 10);
  EXPECT_EQ(failure([&] { small.feed(R"({"items":[{"a":"0123456789"}]})"); }).code, DRIFTD_BUDGET);
}

TEST(K8sLines, ArePutTogether) {
  std::vector<std::string> lines;
  kube::LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); }, 10);
  for (const char* piece : {"on", "e\ntwo\n", "", "thr", "ee", "\n\n"}) splitter.feed(piece);
  EXPECT_THAT(lines, ElementsAre("one", "two", "three", ""));
  EXPECT_EQ(failure([&] { splitter.feed("01234567890"); }).code, DRIFTD_BUDGET);
}

constexpr const char* kConfig = R"(
current-context: here
clusters:
- name: c
  cluster: {server: "https://k.example:6443", certificate-authority: pki/ca.crt, tls-server-name: kube}
users:
- name: token
  user: {token: canary-token}
- name: certified
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}
- name: runs
  user:
    exec:
      command: aws-iam
      args: [token, -i, prod, --oidc-client-secret=canary-1, --password, canary-2, "postgres://u:canary-3@h/x"]
      env: [{name: AWS_PROFILE, value: canary-4}]
- name: other
  user: {as: somebody, token: canary-token}
contexts:
- name: here
  context: {cluster: c, user: token}
- name: certified
  context: {cluster: c, user: certified}
- name: runs
  context: {cluster: c, user: runs}
- name: other
  context: {cluster: c, user: other}
)";

TEST(K8sKubeconfig, GivesServerCaAndWhoAsks) {
  Settings settings;
  kube::apply_kubeconfig(settings, kConfig, {"/etc/kube/", "", false});
  EXPECT_EQ(settings.server, "https://k.example:6443");
  EXPECT_EQ(settings.tls.ca_file, "/etc/kube/pki/ca.crt");
  EXPECT_EQ(settings.tls.server_name, "kube");
  EXPECT_EQ(settings.identification.token, "canary-token");
  Settings certified;
  kube::apply_kubeconfig(certified, kConfig, {"/", "certified", false});
  EXPECT_EQ(certified.tls.certificate_pem, "cert");
  EXPECT_EQ(certified.tls.key_pem, "key");
}

TEST(K8sKubeconfig, RefusesProgramsImpersonationAndBlindTrustAndSaysWhatToDo) {
  Settings settings;
  const auto exec = failure([&] { kube::apply_kubeconfig(settings, kConfig, {"/", "runs", false}); });
  EXPECT_EQ(exec.code, DRIFTD_INVALID);
  EXPECT_THAT(exec.what(),
              HasSubstr("token: \"${exec:aws-iam token -i prod --oidc-client-secret=[REDACTED] --password [REDACTED] "
                        "[REDACTED]}\""));
  EXPECT_THAT(exec.what(), HasSubstr("AWS_PROFILE"));
  EXPECT_THAT(exec.what(), Not(HasSubstr("canary")));
  Settings named;
  kube::apply_kubeconfig(named, kConfig, {"/", "runs", false, false});
  EXPECT_EQ(named.server, "https://k.example:6443") << "who asks is said elsewhere";
  const auto as = failure([&] { kube::apply_kubeconfig(settings, kConfig, {"/", "other", false}); });
  EXPECT_THAT(as.what(), Not(HasSubstr("canary")));
  EXPECT_THAT(failure([&] {
                kube::apply_kubeconfig(settings, kConfig, {"/", "none", false});
              }).what(),
              HasSubstr("'none'"));
  std::string blind = kConfig;
  blind.replace(blind.find("certificate-authority: pki/ca.crt"), 33, "insecure-skip-tls-verify: true");
  EXPECT_EQ(failure([&] { kube::apply_kubeconfig(settings, blind, {"/", "", false}); }).code, DRIFTD_INVALID);
  kube::apply_kubeconfig(settings, blind, {"/", "", true});
  EXPECT_FALSE(settings.tls.verify);
  EXPECT_EQ(failure([&] { kube::apply_kubeconfig(settings, "a: [", {"/", "", false}); }).code, DRIFTD_INVALID);
}

TEST(K8sKubeconfig, AQuoteThatIsNotClosedIsRefusedAndNothingOfItIsShown) {
  Settings settings;
  for (const char* quote : {"\"", "'"}) {
    const auto open = failure([&] {
      kube::apply_kubeconfig(settings, std::string(kConfig) + "note: " + quote + "canary\nother: 1\n",
                             {"/", "", false});
    });
    EXPECT_EQ(open.code, DRIFTD_INVALID);
    EXPECT_THAT(open.what(), HasSubstr("a quote is not closed"));
    EXPECT_THAT(open.what(), Not(HasSubstr("canary")));
  }
}

TEST(K8sKubeconfig, ItsProgramIsOfNoConcernWhereTheTokenIsNamed) {
  const test::TempDir dir;
  const std::string path = dir.write("config", kConfig);
  const auto of = [&](const std::string& more) {
    return R"({"kubeconfig":")" + path + R"(","context":"runs")" + more + "}";
  };
  EXPECT_EQ(failure([&] { parse_settings(of("")); }).code, DRIFTD_INVALID);
  EXPECT_EQ(parse_settings(of(R"(,"token":"ref")")).identification.token_reference, "ref");
}

TEST(K8sSettings, NeedAServerOfHttps) {
  EXPECT_THAT(failure([] { parse_settings("{}"); }).what(), HasSubstr("service_account"));
  EXPECT_THAT(failure([] { parse_settings(R"({"server":"http://x"})"); }).what(), HasSubstr("https://"));
  const Settings pod = parse_settings(R"({"service_account":"/sa","group":"acme.io"})");
  EXPECT_EQ(pod.server, "https://kubernetes.default.svc");
  EXPECT_EQ(pod.identification.token_file, "/sa/token");
  EXPECT_EQ(pod.discover, "acme.io/backend=true");
}

TEST(K8sSettings, MistakesNameTheirSetting) {
  const auto with = [](const std::string& more) {
    return std::string(failure([&] { parse_settings(R"({"server":"https://k",)" + more + "}"); }).what());
  };
  EXPECT_EQ(with(R"("tls":{"ca_file":7})"), "settings.tls.ca_file: expected text, found a number; write it in quotes");
  EXPECT_THAT(with(R"("tls":{"ca":"/ca"})"), HasSubstr("settings.tls.ca: unknown setting"));
  EXPECT_THAT(with(R"("objects":[{"kind":"A"},{}])"), HasSubstr("settings.objects[1].kind: expected"));
  EXPECT_THAT(with(R"("page":5001)"), HasSubstr("settings.page: expected a whole number from 1 to 5000, found 5001"));
  EXPECT_THAT(with(R"("token":"a","token_file":"/b")"), HasSubstr("expected token or token_file, found both"));
}

TEST(K8sKinds, NameTheirPathsRightsAndIds) {
  Settings settings;
  settings.selectors = {{"helm_release", "team=a"}};
  const auto all = known_resources(settings);
  const auto& secret = all.front();
  EXPECT_EQ(secret.path("prod", "a"), "/api/v1/namespaces/prod/secrets/a");
  EXPECT_EQ(secret.path(""), "/api/v1/secrets");
  EXPECT_EQ(secret.right("list", "prod"), "list secrets in namespace prod");
  EXPECT_EQ(secret.right("watch", ""), "watch secrets in all namespaces");
  EXPECT_EQ(all[5].right("get", "prod"), "get deployments.apps in namespace prod");
  EXPECT_EQ(all.back().label_selector, "team=a");
  const Custom custom{"policy", "", "Budget", {}};
  const Resource object{"object", "/apis/policy/v1", "budgets", "Budget", true, {}, {}, &custom, {}};
  EXPECT_EQ(object.id("prod", "x"), "Budget.policy/prod/x");
  EXPECT_EQ(place_of(object, "Budget.policy/prod/x").name, "x");
  EXPECT_EQ(place_of(object, "Other.policy/prod/x").name, "");
  EXPECT_EQ(place_of(secret, "no-namespace").name, "");
}

TEST(K8sCursor, IsOfItsScopeAndOpaque) {
  const std::string cursor = render_cursor({{"secret|secrets|prod", "12"}}, "s");
  EXPECT_EQ(parse_cursor(cursor, "s")->at("secret|secrets|prod"), "12");
  for (const char* bad : {"", "{}", "[]", "junk", R"({"v":1,"scope":"s","at":{"a":1}})"})
    EXPECT_FALSE(parse_cursor(bad, "s")) << bad;
  EXPECT_FALSE(parse_cursor(cursor, "other"));
}

TEST(K8sCursor, WhichVersionIsLaterIsSaidOfNumbersAlone) {
  EXPECT_TRUE(kube::is_later("1000", "999"));
  EXPECT_TRUE(kube::is_later("12", "11"));
  EXPECT_FALSE(kube::is_later("11", "11"));
  EXPECT_FALSE(kube::is_later("999", "1000"));
  for (const char* none : {"", "0", "010", "1x", "-2"}) {
    EXPECT_FALSE(kube::is_later(none, "1")) << none;
    EXPECT_FALSE(kube::is_later("5", none)) << none;
  }
}

TEST(K8sVouch, AWatchAnswersForAListThatBeganAfterIt) {
  const auto now = ListCache::Clock::now();
  ListCache cache;
  cache.set_watch(now, "s");
  EXPECT_FALSE(cache.is_current("c"));
  cache.store({{}, "c", "s", now + std::chrono::seconds(1)});
  EXPECT_TRUE(cache.is_current("c"));
  EXPECT_FALSE(cache.is_current("other"));
  cache.set_watch(now + std::chrono::seconds(2), "s");
  EXPECT_FALSE(cache.is_current("c")) << "what happened between the list and the watch is not known";
  cache.set_watch(now, "fewer types");
  EXPECT_FALSE(cache.is_current("c"));
  EXPECT_TRUE(cache.scope_changed("fewer types"));
  cache.set_watch(std::nullopt, "s");
  EXPECT_FALSE(cache.is_current("c"));
}

TEST(K8sVouch, AListThatBeganBeforeAChangeThatWasNotToldDoesNotHoldIt) {
  ListCache cache;
  cache.set_watch(ListCache::Clock::now() - std::chrono::seconds(9), "s");
  const auto sent = ListCache::Clock::now();
  cache.forget();  // while that list is under way
  cache.store({{}, "c", "s", sent});
  EXPECT_FALSE(cache.is_current("c"));
  EXPECT_FALSE(cache.last());
  cache.store({{}, "d", "s", ListCache::Clock::now() + std::chrono::nanoseconds(1)});
  EXPECT_TRUE(cache.is_current("d"));
}

}  // namespace
}  // namespace driftd::k8s
