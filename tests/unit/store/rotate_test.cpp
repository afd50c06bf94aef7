// SPDX-License-Identifier: Apache-2.0
// The key of a store is rotated: every digest is converted to the new key, and no two values become equal or different.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "unit/store/rotate_fixture.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
  EXPECT_EQ(rotation_events().size(), 1U);
  const auto after = bench.get(bench->events(0, 100));
  ASSERT_EQ(after.size(), before.size() + 1);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i].payload, before[i].payload);
  restart();
  ASSERT_EQ(rotation_events().size(), 1U);
  EXPECT_THAT(proto::to_json(rotation_events()[0]).value(),
              AllOf(HasSubstr("\"layers\":\"1\""), HasSubstr("\"actor\":\"olga\"")));
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

TEST_F(RotateTest, SlowLayerComesAroundEveryDigestAndLaterLayersAroundIt) {
  rows_ = 4;
  fill();
  bench.close();
  ASSERT_TRUE(rotate());
  EXPECT_TRUE(slow_work_.empty()) << "nothing takes long";
  const auto done = rotate_slow();
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(slow_work_.size(), 1U);
  EXPECT_EQ(slow_work_[0].digests, 4U * 4U)
      << "baselines, observations, both sides of ended drifts; the declaration's is one of them";
  EXPECT_GT(slow_work_[0].time.count(), 0);
  ASSERT_TRUE(rotate());
  EXPECT_EQ(slow_work_.size(), 1U) << "a layer around it takes no time";
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

}  // namespace
}  // namespace driftd::test
