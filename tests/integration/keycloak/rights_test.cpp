// SPDX-License-Identifier: Apache-2.0
// What an account that lacks one of the README's roles gets: the name of the role, and nothing that looks deleted.
#include "world.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class KeycloakRights : public SharedKeycloak {
 protected:
  /// Lists everything without this role.
  Collected without(const std::string& role) const {
    auto roles = readme_roles();
    std::erase(roles, role);
    server().set_roles(realm_, roles);
    return probe()->refresh();
  }
  /// Expects that the kind is not complete, and that the role and the command that grants it are named.
  void expect_missing(const Collected& seen, const std::string& kind, const std::string& role) const {
    EXPECT_FALSE(seen.complete.contains(kind)) << kind;
    for (const auto& diagnostic : seen.diagnostics) {
      if (diagnostic.kind != kind || diagnostic.code != DRIFTD_DENIED) continue;
      EXPECT_EQ(diagnostic.right, role);
      EXPECT_THAT(diagnostic.text, HasSubstr("kcadm.sh add-roles -r " + realm_ +
                                             " --uusername service-account-driftd --cclientid realm-management "
                                             "--rolename " +
                                             role));
      return;
    }
    ADD_FAILURE() << "no diagnostic names " << role << " for " << kind;
  }
};

TEST_F(KeycloakRights, WithoutViewClientsClientsAreDeniedNotGone) {
  const Collected seen = without("view-clients");
  expect_missing(seen, "client", "view-clients");
  expect_missing(seen, "client_scope", "view-clients");
  EXPECT_TRUE(seen.complete.contains("group"));
  EXPECT_EQ(seen.cursor, "");
}

TEST_F(KeycloakRights, WithQueryClientsAloneTheEmptyListIsNoList) {
  server().set_roles(realm_, {"view-realm", "query-clients", "view-users", "view-identity-providers", "view-events"});
  expect_missing(probe()->refresh(), "client", "view-clients");
}

TEST_F(KeycloakRights, WithoutViewRealmTheRealmIsDeniedAndBlind) {
  const Collected seen = without("view-realm");
  expect_missing(seen, "realm", "view-realm");
  expect_missing(seen, "component", "view-realm");
  EXPECT_TRUE(seen.complete.contains("client"));
}

TEST_F(KeycloakRights, WithoutViewUsersGroupsAreDenied) {
  expect_missing(without("view-users"), "group", "view-users");
}

TEST_F(KeycloakRights, WithoutViewIdentityProvidersTheyAreDenied) {
  expect_missing(without("view-identity-providers"), "identity_provider", "view-identity-providers");
}

TEST_F(KeycloakRights, WithoutViewEventsTheRealmIsBlindAndTheRoleIsNamed) {
  const Collected seen = without("view-events");
  EXPECT_EQ(seen.complete.size(), 9u);
  ASSERT_NE(seen.diagnostic(DRIFTD_UNSUPPORTED), nullptr);
  EXPECT_THAT(seen.diagnostic(DRIFTD_UNSUPPORTED)->text,
              AllOf(HasSubstr("blind: realm " + realm_), HasSubstr("--rolename view-events")));
}

TEST_F(KeycloakRights, ARealmThatStaysBlindIsNotListedAgainAndAgain) {
  auto roles = readme_roles();
  std::erase(roles, "view-events");
  server().set_roles(realm_, roles);
  const auto opened = probe();
  const Collected listed = opened->refresh();
  const Collected seen = opened->watch(
      listed.cursor, [](const Collected& now) { return now.marks > 1; }, std::chrono::seconds(2));
  EXPECT_EQ(seen.marks, 1) << "the watch asked for a list, though nothing has changed";
}

TEST_F(KeycloakRights, ARefusedLoginNamesTheAccount) {
  ProviderProbe probe("providers/keycloak.so", settings(), {{"token-1", "another secret"}});
  const Collected seen = probe.refresh();
  EXPECT_EQ(seen.status, DRIFTD_UNAUTHENTICATED);
  ASSERT_FALSE(seen.diagnostics.empty());
  EXPECT_THAT(seen.diagnostics.back().text, AllOf(HasSubstr("driftd"), HasSubstr("settings.auth")));
  EXPECT_THAT(seen.diagnostics.back().text, testing::Not(HasSubstr("another secret")));
}

TEST_F(KeycloakRights, ARealmThatDoesNotExistIsEmptyAndItsReadSaysGone) {
  const auto opened = probe({{"realms", {realm_, "nowhere"}}});
  const Collected seen = opened->refresh();
  EXPECT_EQ(seen.complete.at("realm"), 1u);
  const Collected asked = opened->read({{"realm", "nowhere"}});
  EXPECT_TRUE(asked.status != DRIFTD_OK || asked.diagnostic(DRIFTD_NOT_FOUND) != nullptr);
}

}  // namespace
}  // namespace driftd::test
