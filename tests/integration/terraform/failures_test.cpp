// SPDX-License-Identifier: Apache-2.0
// What can happen to a server of states over HTTP, the same for each backend: the diagnostic says what to do, nothing
// is concluded, and the cursor is still valid when the failure is over.
#include <gmock/gmock.h>

#include "site.hpp"
#include "support/certificates.hpp"
#include "support/provider_probe.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class StateBackend : public testing::TestWithParam<const char*> {
 protected:
  StateBackend() : site_(make_site(GetParam())), front_(site_->port(), passing()) {
    certificates_.issue("right", "127.0.0.1", "IP:127.0.0.1");
    certificates_.issue("other", "other.example", "DNS:other.example");
    site_->publish(1, 1);
  }
  /// How the front behaves when it passes everything on.
  json passing(json more = json::object()) const {
    if (site_->speaks_tls()) more["tls"] = true;
    return more;
  }
  /// The same with TLS and this certificate.
  json certified(const std::string& name) const {
    return passing({{"certificate", certificates_.certificate(name)}, {"key", certificates_.key(name)}});
  }
  std::string origin(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(front_.port());
  }
  ProviderProbe probe_of(const json& backend) const {
    return ProviderProbe("providers/terraform.so",
                         {{"backend", backend}, {"call_timeout_ms", 2000}, {"connect_timeout_ms", 2000}},
                         {{"right", site_->password()}, {"wrong", "canary-wrong"}});
  }
  /// A probe that trusts this CA.
  ProviderProbe trusting(const std::string& ca) const {
    json backend = site_->backend(origin("https"));
    backend[site_->ca_setting()] = ca;
    return probe_of(backend);
  }
  /// Expects that every call fails with `code`, concludes nothing, quotes no secret, and names `reason` in its text or
  /// right.
  void expect_failure(ProviderProbe& probe, driftd_status code, const std::string& reason) const {
    for (const auto& seen :
         {probe.refresh(cursor_), probe.refresh(), probe.read({{"instance", "terraform_data.a"}}), probe.discover()}) {
      EXPECT_EQ(seen.status, code) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
      EXPECT_TRUE(seen.records.empty() && seen.complete.empty() && seen.backends.empty());
      EXPECT_FALSE(seen.unchanged || seen.discovery_complete);
      ASSERT_FALSE(seen.diagnostics.empty());
      EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
      EXPECT_THAT(seen.diagnostics[0].text + " " + seen.diagnostics[0].right, HasSubstr(reason));
      EXPECT_THAT(seen.diagnostics[0].text, Not(AnyOf(HasSubstr("canary"), HasSubstr(site_->password()))));
    }
  }
  static void expect_health(ProviderProbe& probe, int state) {
    EXPECT_EQ(static_cast<int>(probe.health().health.state), state);
  }
  /// Expects that the failure is over and that the cursor is still valid.
  void expect_recovered(ProviderProbe& probe) const {
    EXPECT_TRUE(eventually([&] { return probe.refresh(cursor_).unchanged; }));
    expect_health(probe, DRIFTD_HEALTH_UP);
  }

  std::unique_ptr<Site> site_;
  Front front_;
  Certificates certificates_;
  std::string cursor_;
};

TEST_P(StateBackend, SurvivesWhatCanBefallItAndSaysWhatToDo) {
  ProviderProbe probe = probe_of(site_->backend(origin()));
  Collected first;
  ASSERT_TRUE(eventually([&] { return (first = probe.refresh()).status == DRIFTD_OK; })) << first.diagnostics[0].text;
  ASSERT_EQ(first.body("instance", "terraform_data.a")["input"]["value"], 1);
  cursor_ = first.cursor;
  expect_recovered(probe);

  {
    SCOPED_TRACE("429");
    front_.behave(passing({{"status", 429}, {"headers", {{"Retry-After", "7"}}}, {"body", "canary"}}));
    expect_failure(probe, DRIFTD_THROTTLED, "429");
    EXPECT_EQ(probe.refresh(cursor_).diagnostics.at(0).retry_after_ms, 7000);
    expect_health(probe, DRIFTD_HEALTH_DEGRADED);
  }
  {
    SCOPED_TRACE("503");
    front_.behave(passing({{"status", 503}, {"headers", {{"Retry-After", "5"}}}, {"body", "canary"}}));
    expect_failure(probe, DRIFTD_UNAVAILABLE, "503");
    EXPECT_EQ(probe.refresh(cursor_).diagnostics.at(0).retry_after_ms, 5000);
    expect_health(probe, DRIFTD_HEALTH_DOWN);
  }
  {
    SCOPED_TRACE("the answer is cut in the middle of the state; no cursor is given, so that the state must be read");
    front_.behave(passing({{"cut", 5000}}));
    for (const auto& seen : {probe.refresh(), probe.read({{"instance", "terraform_data.a"}})}) {
      EXPECT_THAT(seen.status, AnyOf(DRIFTD_UNAVAILABLE, DRIFTD_CORRUPT));
      EXPECT_TRUE(seen.records.empty() && seen.complete.empty());
      EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
    }
    front_.behave(passing());
    expect_recovered(probe);
  }
  {
    SCOPED_TRACE("a wrong credential");
    ProviderProbe wrong = probe_of(site_->backend(origin(), "wrong"));
    expect_failure(wrong, DRIFTD_UNAUTHENTICATED, "refused");
    expect_health(wrong, DRIFTD_HEALTH_DEGRADED);
  }
  {
    SCOPED_TRACE("the right is taken, and given again");
    site_->revoke();
    ASSERT_TRUE(eventually([&] { return probe.refresh(cursor_).status != DRIFTD_OK; }));
    expect_failure(probe, DRIFTD_DENIED, site_->right());
    expect_health(probe, DRIFTD_HEALTH_DEGRADED);
    site_->grant();
    expect_recovered(probe);
  }
  {
    SCOPED_TRACE("TLS");
    front_.behave(certified("right"));
    ProviderProbe trusts = trusting(certificates_.ca());
    EXPECT_TRUE(trusts.refresh(cursor_).unchanged);
    expect_health(trusts, DRIFTD_HEALTH_UP);
    const Certificates strangers;
    ProviderProbe stranger = trusting(strangers.ca());
    expect_failure(stranger, DRIFTD_UNAVAILABLE, "check the CA");
    expect_health(stranger, DRIFTD_HEALTH_DOWN);
    ProviderProbe without = probe_of(site_->backend(origin("https")));
    expect_failure(without, DRIFTD_UNAVAILABLE, "certificate is not trusted");
    front_.behave(certified("other"));  // also on connections that are open
    expect_failure(trusts, DRIFTD_UNAVAILABLE, "check the CA and the server name");
    expect_health(trusts, DRIFTD_HEALTH_DOWN);
    front_.behave(certified("right"));
    expect_recovered(trusts);
    front_.behave(passing());
    (void)site_->backend(origin());
  }
  {
    SCOPED_TRACE("paused");
    site_->pause();
    expect_failure(probe, DRIFTD_UNAVAILABLE, "127.0.0.1");
    expect_health(probe, DRIFTD_HEALTH_DOWN);
    site_->resume();
    expect_recovered(probe);
  }
  {
    SCOPED_TRACE("a change is still seen");
    site_->publish(2, 2);
    EXPECT_EQ(probe.refresh(cursor_).body("instance", "terraform_data.a")["input"]["value"], 2);
  }
  SCOPED_TRACE("stopped");
  site_->stop();
  expect_failure(probe, DRIFTD_UNAVAILABLE, "127.0.0.1");
  expect_health(probe, DRIFTD_HEALTH_DOWN);
}

INSTANTIATE_TEST_SUITE_P(Terraform, StateBackend, testing::Values("http", "s3", "consul", "kubernetes", "cloud"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace driftd::test
