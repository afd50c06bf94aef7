// SPDX-License-Identifier: Apache-2.0
// A major upgrade by pg_dump into a new cluster, as people do it. The new server prints definitions in its own way and
// gives new oids. Neither is drift, but a real change is (class 55 of the golden table).
#include <fstream>
#include <sstream>

#include "core/judge/judge.hpp"
#include "core/judge/rules.hpp"
#include "core/value/schema.hpp"
#include "integration/postgres/fixture.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kShape = R"(
CREATE TABLE orders (id int PRIMARY KEY, status text DEFAULT 'new'::varchar, placed timestamptz, note varchar(20),
  CONSTRAINT known CHECK (status IN ('new', 'paid', 'sent')), CONSTRAINT alive CHECK (status <> ALL (ARRAY['x'])),
  CONSTRAINT recent CHECK (extract(year FROM placed) > 2000), CONSTRAINT short CHECK (note::text IN ('a', 'b')));
CREATE VIEW paid AS SELECT id, status, substring(note from 1 for 2) AS n FROM orders
  WHERE status IN ('paid', 'sent') AND id = ANY (ARRAY[1, 2, 3]);
CREATE VIEW joined AS SELECT o.id, p.status FROM orders o JOIN paid p USING (id) WHERE p.id::bigint > 2;
CREATE INDEX by_note ON orders (lower(note)) WHERE status IN ('new');
CREATE POLICY own ON orders USING (status IN ('new', 'paid'));
GRANT SELECT ON orders TO reader)";

/// What the agent stores of one fingerprint, and judges each new record against.
struct StoredFingerprint {
  core::StoredResource row;
  core::JudgeContext context;

  /// Judges a record and stores the result. Returns the paths of the changes that are reported.
  std::vector<std::string> judge(const sdk::Record& record) {
    core::Present seen;
    seen.observation.id = row.id;
    seen.observation.body = record.body;
    seen.observation.external_name = record.external_name;
    seen.observation.schema_revision = record.schema_revision;
    seen.observation.observed_ns = context.now_ns += 1'000'000'000;
    const auto judged = core::judge(context, row, seen);
    row = judged.next;
    context.established = true;
    std::vector<std::string> out;
    for (const auto& transition : judged.transitions) {
      for (const auto& change : transition.changes) out.push_back(change.path);
    }
    return out;
  }
};

class PostgresUpgrade : public testing::Test {
 protected:
  PostgresUpgrade() : old_({{}, false, nullptr, "12.22.0"}), new_({{}, false, nullptr, "17.6.0"}) {
    old_.sql("CREATE EXTENSION pgcrypto");
    for (PostgresServer* server : {&old_, &new_}) {
      server->sql(readme_grants("postgres", "sql"));
      server->sql("CREATE ROLE reader");
      server->sql("CREATE DATABASE shop");
    }
    new_.sql("CREATE TABLE one_more (id int)", "shop");  // so that the oids of the two servers differ
    old_.sql(kShape, "shop");
    const auto to = [](const PostgresServer& server) {
      return " -h " + server.host() + " -p " + std::to_string(server.port()) + " -U postgres ";
    };
    const Output moved =
        run({"bash", "-c",
             "set -o pipefail; pg_dump" + to(old_) + "shop | psql -qX -v ON_ERROR_STOP=1" + to(new_) + "shop"},
            {{"PGPASSWORD", old_.password()}});
    if (moved.code != 0) throw std::runtime_error("pg_dump | psql: " + moved.err);
  }
  static sdk::Record fingerprint(const PostgresServer& server, const std::string& table) {
    auto p = postgres_probe(server.endpoint(), {{"databases", {"shop"}}, {"fingerprints", "public"}});
    const auto seen = p.refresh();
    const auto* found = seen.find("table_fingerprint", "shop.public." + table);
    if (found == nullptr) throw std::runtime_error("no fingerprint of " + table);
    return *found;
  }
  /// The fingerprint of a table as it was first seen on the old server.
  StoredFingerprint stored(const std::string& table) const {
    StoredFingerprint out;
    std::ostringstream text;
    text << std::ifstream(DRIFTD_SOURCE_DIR "/plugins/postgres/schema.json").rdbuf();
    out.context.schema =
        core::KindSchema::parse(json::parse(text.str()).at("kinds").at("table_fingerprint").dump()).value();
    out.context.rules = std::make_shared<const core::Rules>();
    out.context.backend_uid = "b";
    out.row.id = {"table_fingerprint", "shop.public." + table};
    EXPECT_THAT(out.judge(fingerprint(old_, table)), IsEmpty());
    out.row.revision = 1;
    return out;
  }
  PostgresServer old_, new_;
};

TEST_F(PostgresUpgrade, AloneIsNoDriftAndEachServersOwnChangesAre) {
  const json before = json::parse(fingerprint(old_, "paid").body), after = json::parse(fingerprint(new_, "paid").body);
  ASSERT_NE(before["definition"], after["definition"])
      << "both servers print the definition alike, so this test proves nothing";
  ASSERT_NE(fingerprint(old_, "orders").external_name, fingerprint(new_, "orders").external_name);
  for (const std::string table : {"orders", "paid", "joined"}) {
    StoredFingerprint one = stored(table);
    one.row.external_name.clear();  // as when the new system was accepted (unit.HeldEngine, unit.StateTest)
    EXPECT_THAT(one.judge(fingerprint(new_, table)), IsEmpty()) << table;
    EXPECT_EQ(core::parse(*one.row.baseline)->find("printed_by")->string()[0], "17/3");
    EXPECT_THAT(one.judge(fingerprint(new_, table)), IsEmpty()) << table;
  }
  StoredFingerprint orders = stored("orders"), paid = stored("paid");
  for (StoredFingerprint* one : {&orders, &paid}) one->row.external_name.clear();
  EXPECT_THAT(orders.judge(fingerprint(new_, "orders")), IsEmpty());
  EXPECT_THAT(paid.judge(fingerprint(new_, "paid")), IsEmpty());
  new_.sql("ALTER TABLE orders DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (status IN ('new', 'paid'))", "shop");
  EXPECT_THAT(orders.judge(fingerprint(new_, "orders")), ElementsAre("constraints"));
  new_.sql(
      "CREATE OR REPLACE VIEW paid AS SELECT id, status, substring(note from 1 for 2) AS n FROM orders WHERE status IN "
      "('paid')",
      "shop");
  EXPECT_THAT(paid.judge(fingerprint(new_, "paid")), ElementsAre("definition"));
}

TEST_F(PostgresUpgrade, WhatChangedBesideItIsDrift) {
  new_.sql("ALTER TABLE orders OWNER TO reader; GRANT INSERT ON paid TO reader", "shop");
  StoredFingerprint orders = stored("orders"), paid = stored("paid");
  for (StoredFingerprint* one : {&orders, &paid}) one->row.external_name.clear();
  EXPECT_THAT(orders.judge(fingerprint(new_, "orders")), testing::IsSupersetOf({"owner"}));
  EXPECT_THAT(paid.judge(fingerprint(new_, "paid")), ElementsAre("grants"));
}

TEST_F(PostgresUpgrade, ATrueChangeOfTheOldServerIsDriftThere) {
  StoredFingerprint orders = stored("orders");
  old_.sql("ALTER TABLE orders DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (status = ANY (ARRAY['new', 'paid']))",
           "shop");
  EXPECT_THAT(orders.judge(fingerprint(old_, "orders")), ElementsAre("constraints"));
}

TEST_F(PostgresUpgrade, TheInstanceTellsTheVersionAndThatDefinitionsAreTakenAnew) {
  const auto instance = [](const PostgresServer& server) {
    auto p = postgres_probe(server.endpoint(), {{"databases", {"shop"}}, {"fingerprints", "public"}});
    return *p.refresh().find("instance", "instance");
  };
  const auto before = instance(old_), after = instance(new_);
  EXPECT_NE(json::parse(before.body)["version"], json::parse(after.body)["version"]);
  EXPECT_NE(json::parse(before.body)["system_identifier"], json::parse(after.body)["system_identifier"]);
  EXPECT_THAT(after.metadata.at("definitions"), testing::HasSubstr("printed by PostgreSQL 17"));
}

}  // namespace
}  // namespace driftd::test
