// SPDX-License-Identifier: Apache-2.0
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "system.hpp"

namespace driftd::test {
namespace {

PostgresServer& server() {
  static std::unique_ptr<PostgresServer> one;
  if (one) return *one;
  one = std::make_unique<PostgresServer>();
  std::string grants = readme_grants("postgres", "sql");
  one->sql(grants.replace(grants.find("CHANGE-ME"), 9, "pg-canary"));
  return *one;
}

/// A role whose connection limit and membership are put back. The role of the agent has the right CREATEROLE or not.
class PostgresRole final : public System {
 public:
  PostgresRole() {
    static int number = 0;
    role_ = "app_" + std::to_string(++number);
    group_ = "readers_" + std::to_string(number);
    server().sql("CREATE ROLE " + role_ + " CONNECTION LIMIT 7; CREATE ROLE " + group_ + "; GRANT " + group_ + " TO " +
                 role_);
  }
  ~PostgresRole() override {
    server().sql("DROP ROLE IF EXISTS " + role_ + "; DROP ROLE " + group_ + "; ALTER ROLE driftd NOCREATEROLE");
  }
  std::string backend() const override {
    return "provider: postgres, settings: { endpoints: [\"" + server().endpoint() +
           "\"], user: driftd, password: \"${env:PG_PASSWORD}\", sslmode: disable, include: [\"role/" + role_ + "\"] }";
  }
  std::map<std::string, std::string> secrets() const override { return {{"PG_PASSWORD", "pg-canary"}}; }
  std::string resource() const override { return "role/" + role_; }
  std::string path() const override { return "**"; }
  std::string set_value(int number) override {
    server().sql("ALTER ROLE " + role_ + " CONNECTION LIMIT " + std::to_string(7 + number));
    return value();
  }
  std::string value() const override {
    return server().value(
        "SELECT concat_ws(' ', r.rolconnlimit, g.rolname) FROM pg_roles r LEFT JOIN pg_auth_members m ON m.member = "
        "r.oid LEFT JOIN pg_roles g ON g.oid = m.roleid WHERE r.rolname = '" +
        role_ + "'");
  }
  void remove() override { server().sql("DROP ROLE " + role_); }
  std::string names() const override {
    return server().value("SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles");
  }
  void grant(bool may_write) override {
    server().sql(std::string("ALTER ROLE driftd ") + (may_write ? "CREATEROLE" : "NOCREATEROLE"));
  }
  std::string missing_right() const override { return "grant the right to role driftd"; }
  void set_and_refuse() override {
    // a role cannot be a member of its own member
    server().sql("REVOKE " + group_ + " FROM " + role_ + "; GRANT " + role_ + " TO " + group_ + "; ALTER ROLE " +
                 role_ + " CONNECTION LIMIT 8");
  }
  std::string refusal() const override { return "is a member of role"; }

 private:
  std::string role_, group_;
};

}  // namespace

std::unique_ptr<System> make_postgres() { return std::make_unique<PostgresRole>(); }

}  // namespace driftd::test
