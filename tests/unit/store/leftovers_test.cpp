// SPDX-License-Identifier: Apache-2.0
// What a store holds for sinks and backends that left the config, read without changing anything.
#include "store/leftovers.hpp"

#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <set>

#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;

class LeftoversTest : public StoreTest {
 protected:
  std::string data(const std::string& name = {}) const { return dir.file("data/" + name); }
  std::set<std::string> files() const {
    std::set<std::string> out;
    for (const auto& file : fs::directory_iterator(data())) {
      std::error_code gone;
      out.insert(file.path().filename().string() + " " + std::to_string(fs::file_size(file.path(), gone)));
    }
    return out;
  }
};

TEST_F(LeftoversTest, EventsOfASinkAreCountedBesideTheRunningAgent) {
  emit(3);
  const auto before = files();
  const auto left = store::read_leftovers(data());
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_EQ(left->sinks.size(), 1u);
  EXPECT_EQ(left->sinks[0].name, "ops");
  EXPECT_EQ(left->sinks[0].pending, 3);
  EXPECT_TRUE(left->backends.empty());
  EXPECT_EQ(files(), before);
}

TEST_F(LeftoversTest, AStoreThatNobodyHasOpenGetsNoFileBesideIt) {
  emit(2);
  bench.close();
  const auto before = files();
  const auto left = store::read_leftovers(data());
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->sinks.at(0).pending, 2);
  EXPECT_EQ(files(), before);
}

/// A store as a kill or a copy leaves it: with a log, and with or without its index.
TEST_F(LeftoversTest, ALogThatNobodyWritesIsReadOrNamedAndNothingIsMade) {
  emit(3);
  const std::string copy = dir.file("copy");
  fs::copy(data(), copy);
  const auto left = store::read_leftovers(copy);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->sinks.at(0).pending, 3);
  fs::remove(copy + "/store.db-shm");
  const auto without = store::read_leftovers(copy);
  EXPECT_TRUE(without || without.error().code == Code::unavailable);
  EXPECT_EQ(without ? without->sinks.at(0).pending : 3, 3) << "never what it was before the log";
  EXPECT_FALSE(fs::exists(copy + "/store.db-shm"));
}

TEST_F(LeftoversTest, OpenDriftsAreCountedByBackend) {
  auto write = resource_write("a");
  for (const char* id : {"d-1", "d-2"}) {
    core::Drift drift;
    drift.id = id;
    drift.backend_uid = backend_row().uid;
    drift.resource = write.next.id;
    write.next.open.push_back(drift);
  }
  bench.get(bench->commit(page_of({write})));
  const auto left = store::read_leftovers(data());
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_EQ(left->backends.size(), 1u);
  EXPECT_EQ(left->backends[0].name, "orders");
  EXPECT_EQ(left->backends[0].open_drifts, 2);
  EXPECT_EQ(left->backends[0].finder, "");
}

TEST_F(LeftoversTest, WhatIsNoStoreOrNoneOfOursIsSaid) {
  EXPECT_EQ(store::read_leftovers(dir.file("nowhere")).error().code, Code::not_found);
  fs::create_directory(dir.file("foreign"));
  std::ofstream(dir.file("foreign/store.db")) << "this is text, and long enough to be looked at as a page of something";
  const auto foreign = store::read_leftovers(dir.file("foreign"));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::unavailable);
  EXPECT_FALSE(fs::exists(dir.file("foreign/store.db-wal")));
}

TEST_F(LeftoversTest, APathWithSignsOfAnAddressIsThatPath) {
  emit(1);
  bench.close();
  const std::string odd = dir.file("a?b#c%41");
  fs::copy(data(), odd);
  const auto left = store::read_leftovers(odd);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->sinks.at(0).pending, 1);
}

}  // namespace
}  // namespace driftd::test
