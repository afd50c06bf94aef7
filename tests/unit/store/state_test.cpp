// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

core::Drift full_drift(const std::string& id) {
  core::Drift drift;
  drift.id = id;
  drift.backend_uid = backend_row().uid;
  drift.resource = {"config", "maxmemory"};
  drift.cls = core::ChangeClass::credential;
  drift.against = core::Against::expectation;
  drift.action = core::Action::enforce;
  drift.operation = core::Operation::recreated;
  drift.status = core::DriftStatus::rejected;
  drift.changes = {{"a.b", core::ChangeClass::config, "1e400", std::nullopt, false},
                   {"c[\"ü\"]", core::ChangeClass::credential, std::nullopt, R"({"$hmac":"k:1:ff"})", true}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  drift.opened_ns = kNoon + 1;
  drift.updated_ns = kNoon + 2;
  drift.stale_since_ns = kNoon + 3;
  drift.actor = "uid 1000 (kim)";
  drift.reason = "not \"mine\"\n";
  drift.decided_ns = kNoon + 4;
  drift.expires_ns = kNoon + 5;
  drift.claimed_by = "lee";
  drift.claim_until_ns = kNoon + 6;
  drift.approvals_needed = 3;
  drift.approvals = {{"ann \"a\"", "d1", kNoon + 7, kNoon + 8}, {"bob", "d2", kNoon + 9, std::nullopt}};
  drift.former = core::FormerBaseline{{{"a.b", "1e400"}, {"c", std::nullopt}}, "x1", 4, "0f"};
  return drift;
}

core::StoredResource full_resource() {
  core::StoredResource row;
  row.id = {"config", "maxmemory"};
  row.baseline = R"({"n":9223372036854775808})";
  row.observed = R"({"n":1e3})";
  row.external_name = "x1";
  row.observed_external_name = "x2";
  row.origin = "file:/etc/redis.conf";
  row.version = "7";
  row.status = R"({"ok":true})";
  row.metadata = {{"serial", "4"}, {"", "empty key"}};
  row.was_unread = {"a.**", "b"};
  row.schema_revision = 3;
  row.observed_ns = kNoon;
  row.digest = {0xffffffffffffffffULL, 0x8000000000000000ULL};
  row.rules_generation = 0xdeadbeefdeadbeefULL;
  return row;
}

void expect_same(const core::Drift& a, const core::Drift& b) {
  EXPECT_EQ(
      std::tie(a.id, a.backend_uid, a.resource, a.cls, a.against, a.action, a.operation, a.status, a.changes, a.digest),
      std::tie(b.id, b.backend_uid, b.resource, b.cls, b.against, b.action, b.operation, b.status, b.changes,
               b.digest));
  EXPECT_EQ(std::tie(a.opened_ns, a.updated_ns, a.stale_since_ns, a.actor, a.reason, a.decided_ns, a.expires_ns,
                     a.claimed_by, a.claim_until_ns),
            std::tie(b.opened_ns, b.updated_ns, b.stale_since_ns, b.actor, b.reason, b.decided_ns, b.expires_ns,
                     b.claimed_by, b.claim_until_ns));
  EXPECT_EQ(std::tie(a.approvals_needed, a.approvals, a.former), std::tie(b.approvals_needed, b.approvals, b.former));
}

void expect_same(const core::StoredResource& a, const core::StoredResource& b) {
  EXPECT_EQ(std::tie(a.id, a.revision, a.baseline, a.observed, a.external_name, a.observed_external_name, a.origin,
                     a.version),
            std::tie(b.id, b.revision, b.baseline, b.observed, b.external_name, b.observed_external_name, b.origin,
                     b.version));
  EXPECT_EQ(
      std::tie(a.status, a.metadata, a.was_unread, a.schema_revision, a.observed_ns, a.digest, a.rules_generation),
      std::tie(b.status, b.metadata, b.was_unread, b.schema_revision, b.observed_ns, b.digest, b.rules_generation));
  ASSERT_EQ(a.open.size(), b.open.size());
  for (std::size_t i = 0; i < a.open.size(); ++i) expect_same(a.open[i], b.open[i]);
}

class StateTest : public StoreTest {
 protected:
  core::StoredResource load(const core::ResourceId& id) {
    return bench.get(bench->load(backend_row().uid, {id})).front();
  }
};

TEST_F(StateTest, BackendRowSurvivesARestart) {
  auto row = backend_row("b000000000000002", "billing");
  row.system_identity = "7301";
  row.health = core::HealthReport::State::degraded;
  row.notes = {{"serial", "12"}};
  row.deleted_ns = kNoon;
  auto page = registration(row);
  page.cursor = "c1";
  page.watch_cursor = "w1";
  page.established = {"topic"};
  bench.get(bench->commit(page));
  restart();
  const auto rows = bench.get(bench->backends());
  ASSERT_EQ(rows.size(), 2U);
  const auto& read = rows[1];
  EXPECT_EQ(std::tie(read.uid, read.name, read.type, read.provider, read.registration, read.system_identity),
            std::tie(row.uid, row.name, row.type, row.provider, row.registration, row.system_identity));
  EXPECT_EQ(read.cursor, "c1");
  EXPECT_EQ(read.watch_cursor, "w1");
  EXPECT_TRUE(read.established.at("topic"));
  EXPECT_EQ(read.health, row.health);
  EXPECT_EQ(read.notes, row.notes);
  EXPECT_EQ(read.deleted_ns, row.deleted_ns);
}

TEST_F(StateTest, SaysUnderWhichSchemaRevisionsSomethingIsStored) {
  bench.get(bench->commit(registration(backend_row())));
  const auto revisions = [&] { return bench.get(bench->schema_revisions(backend_row().uid)); };
  EXPECT_TRUE(revisions().empty());
  std::vector<core::ResourceWrite> writes;
  for (const std::uint32_t revision : {2u, 7u, 7u}) {
    writes.push_back({full_resource(), {}});
    writes.back().next.open.clear();
    writes.back().next.id = {"topic", "t" + std::to_string(writes.size())};
    writes.back().next.schema_revision = revision;
  }
  bench.get(bench->commit(page_of(writes)));
  auto found = revisions();
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::uint32_t>>{{"topic", 2}, {"topic", 7}}));
}

TEST_F(StateTest, AcceptingAnotherSystemForgetsTheIdentitiesThatTheFormerGave) {
  auto row = backend_row();
  row.system_identity = "7301";
  bench.get(bench->commit(registration(row)));
  core::ResourceWrite write{full_resource(), {}};
  ASSERT_NE(write.next.external_name, "");
  bench.get(bench->commit(page_of({write})));
  bench.get(bench->commit(registration(row)));
  EXPECT_EQ(load(write.next.id).external_name, write.next.external_name) << "the same system";
  bench.get(bench->commit(registration(backend_row())));
  EXPECT_EQ(load(write.next.id).external_name, write.next.external_name) << "it did not say which system it is";
  row.system_identity = "7301";
  bench.get(bench->commit(registration(row)));
  row.system_identity = "9999";
  bench.get(bench->commit(registration(row)));
  EXPECT_EQ(load(write.next.id).external_name, "");
  EXPECT_EQ(load(write.next.id).baseline, write.next.baseline);
}

TEST_F(StateTest, WhatIsAskedOfABackendItselfGoesWithItsNewNameAndTakesTheRoomOfALeftOne) {
  const auto asks = [](const std::string& name, const std::string& drift) {
    auto write = resource_write(name, R"({"system_identity":")" + drift + R"("})");
    write.next.id = {"backend", name};
    core::Drift open;
    open.id = drift;
    open.resource = write.next.id;
    write.next.open = {open};
    return write;
  };
  bench.get(bench->commit(page_of({asks("orders", "d-own"), asks("shop", "d-left")})));
  bench.get(bench->commit(registration(backend_row(backend_row().uid, "shop"))));
  const auto moved = load({"backend", "shop"});
  EXPECT_EQ(moved.baseline, R"({"system_identity":"d-own"})");
  ASSERT_EQ(moved.open.size(), 1u);
  EXPECT_EQ(moved.open[0].id, "d-own");
  EXPECT_EQ(load({"backend", "orders"}).revision, 0);
  const auto drifts = bench.get(bench->drifts({}));
  ASSERT_EQ(drifts.size(), 1u);
  EXPECT_EQ(drifts[0].drift.resource, (core::ResourceId{"backend", "shop"}));
}

TEST_F(StateTest, NewRegistrationKeepsCursorAndBaselines) {
  auto page = page_of({});
  page.cursor = "c1";
  page.established = {"config"};
  bench.get(bench->commit(page));
  bench.get(bench->commit(registration(backend_row(backend_row().uid, "renamed"))));
  const auto row = bench.get(bench->backends()).front();
  EXPECT_EQ(row.name, "renamed");
  EXPECT_EQ(row.cursor, "c1");
  EXPECT_TRUE(row.established.at("config"));
}

TEST_F(StateTest, ResourceWithDriftsComesBackExactly) {
  core::ResourceWrite write{full_resource(), {}};
  write.next.open = {full_drift("d-2"), full_drift("d-1")};
  write.next.open[1].changes.clear();
  bench.get(bench->commit(page_of({write})));
  restart();
  write.next.revision = 1;
  expect_same(load(write.next.id), write.next);
}

TEST_F(StateTest, AbsentAndEmptyBodiesAreDifferent) {
  auto write = resource_write("gone");
  write.next.baseline = std::nullopt;
  write.next.observed = "";
  bench.get(bench->commit(page_of({write})));
  EXPECT_EQ(load(write.next.id).baseline, std::nullopt);
  EXPECT_EQ(load(write.next.id).observed, "");
}

TEST_F(StateTest, LoadAnswersEachIdInOrder) {
  bench.get(bench->commit(page_of({resource_write("b"), resource_write("a")})));
  const auto rows = bench.get(bench->load(backend_row().uid, {{"config", "a"}, {"config", "none"}, {"config", "b"}}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].id.id, "a");
  EXPECT_EQ(rows[0].revision, 1);
  EXPECT_EQ(rows[1].id.id, "none");
  EXPECT_EQ(rows[1].revision, 0);
  EXPECT_EQ(rows[2].id.id, "b");
}

TEST_F(StateTest, UnknownBackendIsNotFound) {
  const auto rows = bench.wait(bench->load("nope", {{"config", "a"}}));
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::not_found);
}

TEST_F(StateTest, IndexTellsPresenceAndOpenDrifts) {
  auto write = core::ResourceWrite{full_resource(), {}};
  write.next.open = {full_drift("d-1")};
  auto gone = resource_write("gone");
  gone.next.observed = std::nullopt;
  bench.get(bench->commit(page_of({write, gone})));
  const auto entries = bench.get(bench->index(backend_row().uid));
  ASSERT_EQ(entries.size(), 2U);
  const auto& absent = entries[0].id.id == "gone" ? entries[0] : entries[1];
  const auto& drifted = entries[0].id.id == "gone" ? entries[1] : entries[0];
  EXPECT_EQ(drifted.digest, write.next.digest);
  EXPECT_EQ(drifted.rules_generation, write.next.rules_generation);
  EXPECT_TRUE(drifted.present && drifted.has_open);
  EXPECT_FALSE(absent.present || absent.has_open);
}

TEST_F(StateTest, MovedRevisionWritesNothingOfItsPageAndAllOfTheOthers) {
  bench.get(bench->commit(page_of({resource_write("shared")})));
  auto stale = page_of({resource_write("new"), resource_write("shared", R"({"a":2})", 0)}, {event_draft("shared")});
  stale.cursor = "lost";
  std::vector<Task<Result<core::CommitResult>>> tasks;
  tasks.push_back(bench->commit(page_of({resource_write("x")})));
  tasks.push_back(bench->commit(stale));
  tasks.push_back(bench->commit(page_of({resource_write("shared", R"({"a":3})", 1)})));
  const auto outcomes = bench.wait_all(std::move(tasks));
  EXPECT_TRUE(outcomes[0]);
  ASSERT_FALSE(outcomes[1]);
  EXPECT_EQ(outcomes[1].error().code, Code::conflict);
  EXPECT_THAT(outcomes[1].error().message, HasSubstr("expected revision 0, the store has 1"));
  EXPECT_TRUE(outcomes[2]);
  EXPECT_EQ(load({"config", "new"}).revision, 0);
  EXPECT_EQ(load({"config", "shared"}).baseline, R"({"a":3})");
  EXPECT_EQ(bench.get(bench->backends()).front().cursor, "");
  EXPECT_TRUE(bench.get(bench->events(0, 10)).empty());
}

TEST_F(StateTest, RevisionsRiseByOne) {
  for (std::int64_t revision = 0; revision < 3; ++revision) {
    const auto committed = bench.get(bench->commit(page_of({resource_write("a", "{}", revision)})));
    EXPECT_EQ(committed.revisions, std::vector<std::int64_t>{revision + 1});
  }
}

TEST_F(StateTest, OwnerOfTellsUnknownFromClosed) {
  core::ResourceWrite write{full_resource(), {}};
  write.next.open = {full_drift("d-open"), full_drift("d-done")};
  bench.get(bench->commit(page_of({write})));
  const auto owner = bench.get(bench->owner_of("d-open"));
  EXPECT_EQ(owner.backend_uid, backend_row().uid);
  EXPECT_EQ(owner.resource.open.size(), 2U);
  write.next.revision = 1;
  write.ended = {full_drift("d-done")};
  write.ended[0].status = core::DriftStatus::approved;
  write.next.open.pop_back();
  bench.get(bench->commit(page_of({write})));
  const auto closed = bench.wait(bench->owner_of("d-done"));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::conflict);
  EXPECT_THAT(closed.error().message, HasSubstr("approved since 2025-10-09"));
  EXPECT_EQ(bench.wait(bench->owner_of("d-never")).error().code, Code::not_found);
}

TEST_F(StateTest, EndedDriftsStayInHistoryUntilRetention) {
  core::ResourceWrite write{full_resource(), {full_drift("d-done")}};
  write.ended[0].status = core::DriftStatus::approved;
  bench.get(bench->commit(page_of({write})));
  core::DriftFilter all;
  all.all = true;
  ASSERT_EQ(bench.get(bench->drifts(all)).size(), 1U);
  expect_same(bench.get(bench->drifts(all)).front().drift, write.ended[0]);
  EXPECT_TRUE(bench.get(bench->drifts({})).empty());
  bench.clock.now += 31 * 86'400 * kSecond;
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  EXPECT_TRUE(bench.get(bench->drifts(all)).empty());
}

TEST_F(StateTest, DriftFilterTakesNamesGlobsAndStatus) {
  core::ResourceWrite write{full_resource(), {full_drift("d-done")}};
  write.ended[0].status = core::DriftStatus::approved;
  write.next.open = {full_drift("d-open")};
  bench.get(bench->commit(page_of({write})));
  const auto ids = [&](core::DriftFilter filter) {
    std::vector<std::string> out;
    for (const auto& row : bench.get(bench->drifts(std::move(filter)))) out.push_back(row.drift.id);
    return out;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids({.backend = "ord*", .kind = "config", .id = "max*"}), Ids{"d-open"});
  EXPECT_EQ(ids({.backend = "orders", .status = core::DriftStatus::approved}), Ids{"d-done"});
  EXPECT_EQ(ids({.backend = "ord"}), Ids{});
  EXPECT_EQ(ids({.kind = "[c]onfig"}), Ids{});
}

TEST_F(StateTest, ReaderListsResourcesThatAreThereOrExpected) {
  auto tombstone = resource_write("tombstone");
  tombstone.next.baseline = tombstone.next.observed = std::nullopt;
  auto missing = resource_write("missing");
  missing.next.observed = std::nullopt;
  bench.get(bench->commit(page_of({tombstone, missing, resource_write("there")})));
  std::vector<std::string> names;
  for (const auto& row : bench.get(bench->resources("orders", "*", 10))) names.push_back(row.resource.id.id);
  EXPECT_EQ(names, (std::vector<std::string>{"missing", "there"}));
  EXPECT_EQ(bench.get(bench->resources("", "", 1)).size(), 1U);
}

TEST_F(StateTest, TombstonesGoAfterRetention) {
  auto tombstone = resource_write("tombstone");
  tombstone.next.baseline = tombstone.next.observed = std::nullopt;
  tombstone.next.observed_ns = kNoon;
  bench.get(bench->commit(page_of({tombstone, resource_write("there")})));
  bench.clock.now += 31 * 86'400 * kSecond;
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  EXPECT_EQ(bench.get(bench->index(backend_row().uid)).size(), 1U);
}

}  // namespace
}  // namespace driftd::test
