// SPDX-License-Identifier: Apache-2.0
// The key of a store is rotated: every digest is converted to the new key, no two values become equal or different, and
// a kill at any moment is survived.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "store/checksums.hpp"
#include "store/rotate.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RotateTest : public StoreTest {
 protected:
  int rows_ = 40;
  std::string data(const std::string& name = {}) const { return dir.file("data/" + name); }

  /// Returns the digest of value number `n` by a worker, as the store holds it under `key`.
  static std::string sealed(const store::InstallationKey& key, int n) {
    const std::string hex = to_hex(sha256("worker digest " + std::to_string(n)));
    return core::seal("{\"open\":" + std::to_string(n) + ",\"p\":{\"$hmac\":\"" + key.worker.id + ":1:" + hex + "\"}}",
                      key.store)
        .value();
  }
  static std::string sealed_value(const store::InstallationKey& key, int n) {
    return core::render(*core::parse(sealed(key, n)).value().find("p"));
  }
  static core::Drift drift_of(const store::InstallationKey& key, const std::string& id, int n) {
    core::Drift out;
    out.id = id;
    out.resource = {"config", "r" + std::to_string(n)};
    out.changes = {
        {"p", core::ChangeClass::credential, sealed_value(key, n), sealed_value(key, n + 1'000), true},
        {"q", core::ChangeClass::config, "\"" + key.store.id + key.worker.id + ":1:text\"", std::nullopt, false}};
    out.against = core::Against::expectation;
    out.digest = core::digest_of(out.changes, out.against);
    return out;
  }

  /// Writes a digest to each place that may contain one.
  void fill() {
    const auto key = bench->key();
    std::vector<core::ResourceWrite> writes;
    for (int n = 0; n < rows_; ++n) {
      writes.push_back(resource_write("r" + std::to_string(n), sealed(key, n)));
      writes.back().next.observed = sealed(key, n + 1'000);
      writes.back().next.digest = {7, 8};
      writes.back().next.rules_generation = 9;
      writes.back().next.open = {drift_of(key, "d-open" + std::to_string(n), n)};
      writes.back().ended = {drift_of(key, "d-done" + std::to_string(n), n + 2'000)};
      writes.back().ended[0].status = core::DriftStatus::approved;
    }
    auto page = page_of(std::move(writes), {event_draft("a")});
    core::DeclarationWrite declared;
    declared.target = "orders";
    declared.declaration.source_uid = backend_row().uid;
    declared.declaration.id = {"config", "r0"};
    declared.declaration.digest = {5, 6};
    declared.declaration.body = sealed(key, 3'000);
    page.declarations = {declared};
    bench.get(bench->commit(std::move(page)));
  }
  /// Checks that all digests are those that an agent would make now.
  void expect_under(const store::InstallationKey& key) {
    for (int n = 0; n < rows_; ++n) {
      const auto rows = bench.get(bench->load(backend_row().uid, {{"config", "r" + std::to_string(n)}}));
      ASSERT_EQ(rows.size(), 1U);
      EXPECT_EQ(rows[0].baseline, sealed(key, n));
      EXPECT_EQ(rows[0].observed, sealed(key, n + 1'000));
      ASSERT_EQ(rows[0].open.size(), 1U);
      const auto wanted = drift_of(key, "", n);
      EXPECT_EQ(rows[0].open[0].changes[0].old_value, wanted.changes[0].old_value);
      EXPECT_EQ(rows[0].open[0].changes[0].new_value, wanted.changes[0].new_value);
      EXPECT_EQ(rows[0].open[0].digest, core::digest_of(rows[0].open[0].changes, rows[0].open[0].against));
    }
    core::DriftFilter every;
    every.all = true;
    every.limit = 1'000;
    for (const auto& row : bench.get(bench->drifts(every))) {
      const int n = std::stoi(row.drift.id.substr(6)) + (row.drift.id.starts_with("d-done") ? 2'000 : 0);
      EXPECT_EQ(row.drift.changes[0].new_value, sealed_value(key, n + 1'000)) << row.drift.id;
    }
    const auto declared = bench.get(bench->declarations("orders", {{"config", "r0"}}));
    ASSERT_EQ(declared.size(), 1U);
    EXPECT_EQ(declared[0].body, sealed(key, 3'000));
  }
  Result<store::Rotated> rotate(std::function<void(std::string_view)> at_step = {},
                                core::LayerKind kind = core::LayerKind::hmac) {
    store::Settings settings;
    settings.data_dir = data();
    settings.at_step = std::move(at_step);
    core::AuditEntry line;
    line.actor = "olga";
    line.reason = "a backup was lost";
    return store::rotate(std::move(settings), line, bench.clock, kind,
                         [this](const store::SlowWork& work) { heard_.push_back(work); });
  }
  Result<store::Rotated> rotate_slow() { return rotate({}, kSlow); }
  /// Runs a rotation in a process that is killed at this step. Returns true if it got there.
  bool killed_at(const std::string& step, core::LayerKind kind) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)rotate(
          [&](std::string_view at) {
            if (at == step) ::_exit(9);
          },
          kind);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 9;
  }
  /// Checks that a failed rotation has changed nothing.
  void expect_untouched(const std::string& key_text, const store::InstallationKey& key) {
    EXPECT_TRUE(read_file(data("installation.key")) == key_text) << "the former key is gone";
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(bench->key().store.layers.size(), 0U);
    EXPECT_TRUE(told().empty());
    EXPECT_TRUE(bench.get(bench->audit(10)).empty());
    EXPECT_EQ(bench.get(bench->load(backend_row().uid, {{"config", "r1"}}))[0].baseline, sealed(key, 1));
  }
  void kill_at_each_step(core::LayerKind kind);
  std::string all_bytes() const {
    std::string out;
    for (const auto& entry : fs::directory_iterator(data())) {
      if (entry.path().filename().string().starts_with("store")) out += read_file(entry.path().string());
    }
    return out;
  }
  std::vector<core::StoredEvent> told() {
    bench.get(bench->announce());
    std::vector<core::StoredEvent> out;
    for (auto& event : bench.get(bench->events(0, 1'000'000))) {
      if (event.agent_event && event.what == "key_rotated") out.push_back(std::move(event));
    }
    return out;
  }

  static constexpr core::LayerKind kSlow = core::LayerKind::slow;
  std::vector<store::SlowWork> heard_;
};

TEST_F(RotateTest, EveryDigestIsWhatTheAgentWouldMakeUnderTheNewKey) {
  fill();
  const auto before = bench->key();
  bench.close();
  for (const std::size_t layers : {1U, 2U, 3U}) {
    const auto done = rotate();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->layers, layers);
    EXPECT_TRUE(store::verify(file())) << store::verify(file()).error().message;
    ASSERT_TRUE(bench.open());
    EXPECT_EQ(bench->key().store.layers.size(), layers);
    EXPECT_EQ(bench->key().worker.key, before.worker.key) << "workers go on as they were";
    expect_under(bench->key());
    bench.close();
  }
}

TEST_F(RotateTest, TheFileHoldsNothingOfTheFormerKey) {
  fill();
  const auto before = bench->key();
  for (int n = 0; n < rows_; ++n) {  // rewritten pages leave their old bytes behind
    auto again = resource_write("r" + std::to_string(n), "{}", 1);
    bench.get(bench->commit(page_of({again})));
    if (n % 2 == 0) continue;
    again = resource_write("r" + std::to_string(n), sealed(before, n), 2);
    bench.get(bench->commit(page_of({again})));
  }
  bench.close();
  const auto hex_of = [&](int n) { return core::as_digest(*core::parse(sealed(before, n)).value().find("p"))->hex; };
  ASSERT_NE(all_bytes().find(hex_of(1)), std::string::npos);
  ASSERT_TRUE(rotate());
  const std::string bytes = all_bytes();
  for (int n = 0; n < rows_; ++n) {
    for (const int of : {n, n + 1'000, n + 2'000, n + 3'000})
      EXPECT_EQ(bytes.find(hex_of(of)), std::string::npos) << of;
  }
  EXPECT_EQ(bytes.find(drift_of(before, "", 1).digest), std::string::npos)
      << "a digest over digests is as good to try guesses on";
}

/// A large body that gets small leaves its bytes in whole pages that a rotation does not touch, if SQLite was not built
/// to overwrite them.
TEST_F(RotateTest, PagesThatAreFreeHoldNothingOfTheFormerKey) {
  const auto key = bench->key();
  std::string large;
  for (int n = 0; n < 2'000; ++n) large += sealed_value(key, n);
  bench.close();
  tamper(file(), "PRAGMA secure_delete = OFF; CREATE TABLE large (body); INSERT INTO large VALUES ('" + large +
                     "'); DROP TABLE large");
  const auto found = [&] {
    const std::string bytes = all_bytes();
    int out = 0;
    for (int n = 0; n < 2'000; ++n)
      out += bytes.find(core::as_digest(*core::parse(sealed_value(key, n)))->hex) != std::string::npos;
    return out;
  };
  ASSERT_GT(found(), 1'000) << "the pages are free and as they were";
  const auto done = rotate();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->unswept, "");
  EXPECT_EQ(found(), 0);
}

TEST_F(RotateTest, DigestsOfRecordsAreMadeAnewUnderAnotherSeed) {
  fill();
  const auto seed = bench->key().digest_seed;
  bench.close();
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(bench.open());
  EXPECT_NE(bench->key().digest_seed, seed);
  for (const auto& entry : bench.get(bench->index(backend_row().uid))) {
    EXPECT_EQ(entry.digest, Digest{}) << "whoever knows the former seed could try guesses on it";
    EXPECT_EQ(entry.rules_generation, 0U) << "declarations' digests are folded into it";
    EXPECT_TRUE(entry.has_open);
  }
  for (const auto& entry : bench.get(bench->declared_by(backend_row().uid))) EXPECT_EQ(entry.digest, Digest{});
}

TEST_F(RotateTest, AKillAtAnyStepLeavesStoreAndKeyTogether) { kill_at_each_step(core::LayerKind::hmac); }

TEST_F(RotateTest, AKillAtAnyStepOfASlowLayerLeavesStoreAndKeyTogether) {
  rows_ = 3;
  kill_at_each_step(kSlow);
}

void RotateTest::kill_at_each_step(core::LayerKind kind) {
  fill();
  const auto before = bench->key();
  bench.close();
  fs::copy(data(), dir.file("untouched"), fs::copy_options::recursive);
  for (const char* step : {"made", "resources", "drifts", "declarations", "named", "written", "rewrapped", "swept"}) {
    fs::remove_all(data());
    fs::copy(dir.file("untouched"), data(), fs::copy_options::recursive);
    ASSERT_TRUE(killed_at(step, kind)) << step;
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << step << ": " << opened.error().message;
    const bool written = std::string_view(step) == "written" || std::string_view(step) == "rewrapped" ||
                         std::string_view(step) == "swept";
    EXPECT_EQ(bench->key().store.layers.size(), written ? 1U : 0U) << step;
    EXPECT_EQ(bench->key().store.slow(), written && kind == kSlow) << step;
    expect_under(bench->key());
    EXPECT_EQ(told().size(), written ? 1U : 0U) << step;
    const auto audit = bench.get(bench->audit(10));
    EXPECT_EQ(audit.size(), written ? 1U : 0U) << step;
    EXPECT_TRUE(bench.get(bench->verify_audit()).whole);
    bench.close();
    EXPECT_TRUE(store::verify(file())) << step;
    const std::string hex = core::as_digest(*core::parse(sealed(before, 0)).value().find("p"))->hex;
    EXPECT_EQ(all_bytes().find(hex) == std::string::npos, written) << step;
  }
}

TEST_F(RotateTest, ARewriteThatFailsLeavesTheKeyAndTheStoreOfBefore) {
  fill();
  const auto before = bench->key();
  bench.close();
  tamper(file(),
         "CREATE TRIGGER full BEFORE UPDATE ON drift WHEN new.id = 'd-done3' BEGIN SELECT RAISE(ABORT, 'database or "
         "disk is full'); END");
  const std::string key_text = read_file(data("installation.key"));
  const auto done = rotate();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("disk is full"), HasSubstr("the key and the store are as they were")));
  expect_untouched(key_text, before);
}

/// A row whose checksum is right but whose text is invalid is repaired and reported like one with a wrong checksum, and
/// stops neither a rotation nor the start that must finish one.
TEST_F(RotateTest, RowsThatCannotBeReadHoldUpNeitherARotationNorAStart) {
  constexpr const char* kNone = "of another time, \"$hmac\"";
  fill();
  bench.close();
  fs::copy(data(), dir.file("kept"), fs::copy_options::recursive);
  const std::tuple<std::string, std::string, std::string> broken[] = {
      {"resource", "baseline = '%' WHERE name = 'r3'", "resource config/r3"},
      {"resource", "observed = '%' WHERE name = 'r4'", "resource config/r4"},
      {"drift", "changes = '%' WHERE id = 'd-open5'", "drift d-open5"},
      {"drift", "changes = '%' WHERE id = 'd-done6'", "drift d-done6"},
      {"drift", "changes = replace(changes, '\"$hmac', '{\"$hmac') WHERE id = 'd-open7'", "drift d-open7"},
      {"declaration", "body = '%'", "declaration orders/config/r0"}};
  for (const bool by_a_start : {false, true}) {
    fs::remove_all(data());
    fs::copy(dir.file("kept"), data(), fs::copy_options::recursive);
    for (auto [table, set, name] : broken) {
      if (const auto at = set.find('%'); at != std::string::npos) set.replace(at, 1, kNone);
      const auto db = store::Connection::open(file(), store::Connection::Mode::read_write);
      ASSERT_TRUE((*db)->execute("UPDATE " + table + " SET " + set));
      ASSERT_TRUE((*db)->execute("UPDATE resource SET crc = " DRIFTD_CRC_RESOURCE
                                 "; UPDATE drift SET crc = " DRIFTD_CRC_DRIFT
                                 "; UPDATE declaration SET crc = " DRIFTD_CRC_DECLARATION));
    }
    if (by_a_start) {
      ASSERT_TRUE(killed_at("written", core::LayerKind::hmac));
    } else {
      const auto done = rotate();
      ASSERT_TRUE(done) << done.error().message;
    }
    const Status opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
    std::string told;
    int count = 0;
    for (const auto& event : bench.get(bench->events(0, 1'000))) {
      if (event.what == "corrupt") told += proto::to_json(event).value(), ++count;
    }
    EXPECT_EQ(count, 6) << told;
    for (const auto& [table, set, name] : broken) EXPECT_THAT(told, HasSubstr(name + " of "));
    const auto load = [&](const std::string& id) {
      return bench.get(bench->load(backend_row().uid, {{"config", id}})).front();
    };
    for (const char* id : {"r3", "r4"}) {
      EXPECT_EQ(load(id).baseline, "{}") << id << ": the next observation is taken for it";
      EXPECT_THAT(load(id).was_unread, testing::ElementsAre("**"));
      EXPECT_EQ(load(id).open.size(), 1U) << "its drift is another row";
    }
    for (const char* id : {"r5", "r7"}) EXPECT_TRUE(load(id).open.empty()) << id << " is judged anew";
    for (const char* id : {"r5", "r8"}) EXPECT_EQ(load(id).baseline, sealed(bench->key(), std::stoi(id + 1))) << id;
    EXPECT_EQ(load("r8").open.front().changes[0].new_value, sealed_value(bench->key(), 1'008));
    EXPECT_TRUE(bench.get(bench->declarations("orders", {{"config", "r0"}})).empty())
        << "until its source says it again";
    bench.close();
    EXPECT_TRUE(store::verify(file())) << store::verify(file()).error().message;
  }
}

TEST_F(RotateTest, ACommitThatFailsAfterTheKeyWasWrittenPutsTheFormerOneBack) {
  fill();
  const auto before = bench->key();
  bench.close();
  tamper(file(),
         "CREATE TRIGGER full BEFORE UPDATE ON meta WHEN new.key = 'commits' AND EXISTS (SELECT 1 FROM meta WHERE key "
         "= 'unswept') "
         "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END");
  const std::string key_text = read_file(data("installation.key"));
  bool was_written = false;
  const auto done = rotate(
      [&](std::string_view at) { was_written |= at == "written" && read_file(data("installation.key")) != key_text; });
  ASSERT_FALSE(done);
  EXPECT_TRUE(was_written);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("disk is full"), HasSubstr("the key and the store are as they were")));
  expect_untouched(key_text, before);
  if (HasFatalFailure()) return;
  bench.close();
  tamper(file(), "DROP TRIGGER full");
  ASSERT_TRUE(rotate()) << "and the next one is as if there had been none";
}

TEST_F(RotateTest, AKeyThatCannotBeWrittenIsNotCalledWritten) {
  fill();
  const auto before = bench->key();
  bench.close();
  fs::create_directory(data("installation.key.new"));  // the key can neither be replaced nor restored
  const std::string key_text = read_file(data("installation.key"));
  const auto done = rotate();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("installation.key.new"), HasSubstr("the key and the store are as they were")));
  expect_untouched(key_text, before);
}

TEST_F(RotateTest, ReaderBesideARotationKeepsFormerPagesAndTheAnswerSaysSo) {
  fill();
  const std::string hex = core::as_digest(*core::parse(sealed(bench->key(), 0)).value().find("p"))->hex;
  bench.close();
  auto reader = store::Connection::open(file(), store::Connection::Mode::read_only);
  ASSERT_TRUE(reader);
  ASSERT_TRUE((*reader)->execute("BEGIN"));
  ASSERT_TRUE((*reader)->integer("SELECT count(*) FROM resource"));
  const auto done = rotate();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(done->unswept, HasSubstr("reads the store"));
  EXPECT_NE(all_bytes().find(hex), std::string::npos);
  reader->reset();
  ASSERT_TRUE(bench.open());
  bench.close();
  EXPECT_EQ(all_bytes().find(hex), std::string::npos) << "the next start overwrites them";
}

TEST_F(RotateTest, AnUnopenedOutboxKeepsItsBytesAndTheRotationIsToldOnce) {
  fill();
  const auto before = bench.get(bench->events(0, 100));
  bench.close();
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(told().size(), 1U);
  const auto after = bench.get(bench->events(0, 100));
  ASSERT_EQ(after.size(), before.size() + 1);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i].payload, before[i].payload);
  restart();
  ASSERT_EQ(told().size(), 1U);
  EXPECT_THAT(proto::to_json(told()[0]).value(), AllOf(HasSubstr("\"layers\":\"1\""), HasSubstr("\"actor\":\"olga\"")));
  const auto audit = bench.get(bench->audit(10));
  ASSERT_EQ(audit.size(), 1U);
  EXPECT_EQ(audit[0].verb, "rotated key");
  EXPECT_EQ(audit[0].actor, "olga");
  EXPECT_THAT(audit[0].reason, HasSubstr("a backup was lost"));
}

TEST_F(RotateTest, EachEventKeepsTheKeyOfItsTimeForSinksWithoutValues) {
  const auto first = emit(2);
  const auto base = bench->key().store.key;
  bench.close();
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(bench.open());
  const auto second = emit(2);
  bench.close();
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(bench.open());
  const auto third = emit(1);
  const auto& key = bench->key();
  for (const auto seq : first) EXPECT_EQ(key.for_event(seq), base);
  for (const auto seq : second) EXPECT_EQ(key.for_event(seq), key.store.layers[0].key);
  for (const auto seq : third) EXPECT_EQ(key.for_event(seq), key.store.layers[1].key);
}

TEST_F(RotateTest, TheFormerKeyFileDoesNotOpenTheNewStore) {
  bench.close();
  fs::copy(data("installation.key"), dir.file("leaked.key"));
  ASSERT_TRUE(rotate());
  const std::string newer = read_file(data("installation.key"));
  fs::copy(dir.file("leaked.key"), data("installation.key"), fs::copy_options::overwrite_existing);
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::conflict);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("is from before a rotation"), HasSubstr("installation.key")));
  std::ofstream(data("installation.key"), std::ios::binary) << newer;
  EXPECT_TRUE(bench.open());
}

TEST_F(RotateTest, RunningAgentKeepsItsKey) {
  const std::string before = read_file(data("installation.key"));
  const auto done = rotate();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::conflict);
  EXPECT_THAT(done.error().message, HasSubstr("in use by pid"));
  EXPECT_EQ(read_file(data("installation.key")), before);
}

TEST_F(RotateTest, BackupOfBeforeIsBroughtUpWhenItIsRestored) {
  fill();
  ASSERT_TRUE(store::back_up(data(), dir.file("with.db"), true, bench.clock.wall()));
  ASSERT_TRUE(store::back_up(data(), dir.file("without.db"), false, bench.clock.wall()));
  bench.close();
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(rotate());
  for (const char* name : {"with.db", "without.db"}) {
    const auto restored = store::restore(data(), dir.file(name), {}, bench.clock.wall());
    ASSERT_TRUE(restored) << restored.error().message;
    ASSERT_TRUE(bench.open());
    EXPECT_EQ(bench->key().store.layers.size(), 2U) << "the key of before is not taken back";
    expect_under(bench->key());
    bench.close();
  }
}

TEST_F(RotateTest, BackupOfAfterIsNotRestoredUnderTheKeyOfBefore) {
  fs::copy(data("installation.key"), dir.file("former.key"));
  bench.close();
  ASSERT_TRUE(rotate());
  const auto made = store::back_up(data(), dir.file("copy.db"), true, bench.clock.wall());
  ASSERT_TRUE(made) << made.error().message;
  const auto refused = store::restore(dir.file("new"), dir.file("copy.db"), dir.file("former.key"), bench.clock.wall());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is from before a rotation"));
  const auto restored = store::restore(dir.file("new"), dir.file("copy.db"), {}, bench.clock.wall());
  ASSERT_TRUE(restored) << restored.error().message;
  Bench elsewhere(dir.file("new"));
  EXPECT_TRUE(elsewhere.open());
}

TEST_F(RotateTest, KeyThatCannotBeReadIsNotRenamedAwayForOneOfBefore) {
  fill();
  ASSERT_TRUE(store::back_up(data(), dir.file("with.db"), true, bench.clock.wall()));
  bench.close();
  ASSERT_TRUE(rotate());
  const std::string whole = read_file(data("installation.key")), cut = whole.substr(0, whole.size() / 2);
  for (const auto& [text, mode, code] : {std::tuple(whole, 0644, Code::denied), std::tuple(cut, 0600, Code::corrupt)}) {
    std::ofstream(data("installation.key"), std::ios::binary) << text;
    fs::permissions(data("installation.key"), static_cast<fs::perms>(mode));
    const auto refused = store::restore(data(), dir.file("with.db"), {}, bench.clock.wall());
    ASSERT_FALSE(refused) << text.size();
    EXPECT_EQ(refused.error().code, code);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("installation.key"), HasSubstr("--key")));
    EXPECT_EQ(read_file(data("installation.key")), text);
    EXPECT_FALSE(fs::exists(data("store.db.restoring")));
  }
  const auto restored = store::restore(data(), dir.file("with.db"), dir.file("with.db.key"), bench.clock.wall());
  EXPECT_TRUE(restored) << "who names a key has decided: " << restored.error().message;
}

TEST_F(RotateTest, DamagedRowIsNotSignedByARotation) {
  fill();
  bench.close();
  tamper(file(), "UPDATE resource SET baseline = replace(baseline, '\"open\":3', '\"open\":4') WHERE name = 'r3'");
  ASSERT_TRUE(rotate());
  ASSERT_TRUE(bench.open());
  const auto rows = bench.get(bench->load(backend_row().uid, {{"config", "r3"}}));
  EXPECT_EQ(rows[0].baseline, "{}") << "it was forgotten as damaged rows are";
  int told_of = 0;
  for (const auto& event : bench.get(bench->events(0, 1'000))) told_of += event.what == "corrupt";
  EXPECT_EQ(told_of, 1);
}

TEST_F(RotateTest, SlowLayerComesAroundEveryDigestAndLaterLayersAroundIt) {
  rows_ = 4;
  fill();
  bench.close();
  ASSERT_TRUE(rotate());
  EXPECT_TRUE(heard_.empty()) << "nothing takes long";
  const auto done = rotate_slow();
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(heard_.size(), 1U);
  EXPECT_EQ(heard_[0].digests, 4U * 4U)
      << "baselines, observations, both sides of ended drifts; the declaration's is one of them";
  EXPECT_GT(heard_[0].time.count(), 0);
  ASSERT_TRUE(rotate());
  EXPECT_EQ(heard_.size(), 1U) << "a layer around it takes no time";
  ASSERT_TRUE(bench.open());
  const auto layers = bench->key().store.layers;
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].kind, core::LayerKind::hmac);
  EXPECT_EQ(layers[1].kind, kSlow);
  EXPECT_EQ(layers[2].kind, core::LayerKind::hmac);
  expect_under(bench->key());
  bench.close();
  EXPECT_TRUE(store::verify(file()));
}

/// An attacker with the key file tests guesses, and each takes microseconds.
TEST_F(RotateTest, GuessesWithHmacsAloneFindNothingUnderASlowLayer) {
  rows_ = 4;
  fill();
  bench.close();
  ASSERT_TRUE(rotate_slow());
  ASSERT_TRUE(bench.open());
  const auto key = bench->key();
  bench.close();
  const std::string bytes = all_bytes();
  store::InstallationKey fast = key, bare = key;
  fast.store.layers[0].kind = core::LayerKind::hmac;
  bare.store.layers.clear();
  const auto hex = [](const store::InstallationKey& with, int n) {
    return core::as_digest(*core::parse(sealed(with, n)).value().find("p"))->hex;
  };
  for (int n = 0; n < rows_; ++n) {
    EXPECT_NE(bytes.find(hex(key, n)), std::string::npos);
    EXPECT_EQ(bytes.find(hex(fast, n)), std::string::npos);
    EXPECT_EQ(bytes.find(hex(bare, n)), std::string::npos);
    EXPECT_EQ(bytes.find(to_hex(sha256("worker digest " + std::to_string(n)))), std::string::npos);
  }
}

TEST_F(RotateTest, SecondSlowLayerIsRefusedAndChangesNothing) {
  rows_ = 1;
  fill();
  bench.close();
  ASSERT_TRUE(rotate_slow());
  const std::string key_text = read_file(data("installation.key"));
  const auto again = rotate_slow();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict);
  EXPECT_THAT(again.error().message, AllOf(HasSubstr("has a slow layer already"), HasSubstr("without --slow")));
  EXPECT_EQ(read_file(data("installation.key")), key_text);
  ASSERT_TRUE(bench.open());
  expect_under(bench->key());
}

TEST_F(RotateTest, BackupOfBeforeASlowLayerIsCaughtUpWhenItIsRestored) {
  rows_ = 3;
  fill();
  ASSERT_TRUE(store::back_up(data(), dir.file("with.db"), true, bench.clock.wall()));
  bench.close();
  ASSERT_TRUE(rotate_slow());
  ASSERT_TRUE(rotate());
  const auto restored = store::restore(data(), dir.file("with.db"), {}, bench.clock.wall());
  ASSERT_TRUE(restored) << restored.error().message;
  ASSERT_TRUE(bench.open());
  ASSERT_EQ(bench->key().store.layers.size(), 2U);
  EXPECT_TRUE(bench->key().store.slow());
  expect_under(bench->key());
}

TEST_F(RotateTest, KeyOfANewerDriftdIsRefusedAndSaidToBeOne) {
  bench.close();
  ASSERT_TRUE(rotate_slow());
  const std::string text = read_file(data("installation.key"));
  ASSERT_TRUE(text.starts_with("driftd installation key v3\n")) << "a driftd of before slow layers must not take it";
  std::string version = text, kind = text, hidden = text;
  version.replace(version.find("v3"), 2, "v4");
  kind.replace(kind.find("\nslow "), 6, "\nsmart ");
  hidden.replace(hidden.find("v3"), 2, "v2");
  for (const auto& [file, code, words] :
       {std::tuple(version, Code::unsupported, "it is of version 4, this one knows 1 to 3"),
        std::tuple(kind, Code::unsupported, "a layer of a kind that this one does not know"),
        std::tuple(hidden, Code::corrupt, "is not an installation key of this version")}) {
    std::ofstream(data("installation.key"), std::ios::binary) << file;
    const auto opened = bench.open();
    ASSERT_FALSE(opened) << file.substr(0, 30);
    EXPECT_EQ(opened.error().code, code);
    EXPECT_THAT(opened.error().message, AllOf(HasSubstr("installation.key"), HasSubstr(words)));
    EXPECT_EQ(read_file(data("installation.key")), file);
  }
}

TEST_F(RotateTest, NothingIsMadeWhereThereIsNoStore) {
  store::Settings settings;
  settings.data_dir = dir.file("nowhere");
  const auto done = store::rotate(std::move(settings), {}, bench.clock);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::not_found);
  EXPECT_FALSE(fs::exists(dir.file("nowhere")));
}

}  // namespace
}  // namespace driftd::test
