// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <sqlite3.h>

#include "engine/runner.hpp"
#include "support/line/engine_line.hpp"

namespace driftd::test {

inline core::ResourceId thing(int number) { return {"thing", "t" + std::to_string(number)}; }

inline core::Decision decision(core::Decision::Verb verb) {
  core::Decision out;
  out.verb = verb;
  out.actor = "uid:0";
  out.at_ns = SystemClock().wall();
  return out;
}

/// Runs SQL on the file beside the store, as a broken disk would change it.
inline void tamper(const std::string& file, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 5000);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
}

/// One backend with thirty resources of kind `thing`, over a store in a temporary folder.
class EngineOnTheStore : public testing::Test {
 protected:
  EngineOnTheStore() { open(); }
  void open() {
    line_ = std::make_unique<EngineLine>(dir_);
    for (int i = 0; i < 30; ++i) line_->world->resources[thing(i)] = R"({"partitions":3})";
  }
  void baseline() {
    line_->start(false);
    ASSERT_TRUE(line_->refresh().complete());
    ASSERT_THAT(line_->drifts(), testing::IsEmpty());
  }
  /// Starts a new process on the same store and the same scripted world.
  void restart(core::Rules rules = {}) {
    another_process();
    line_->start(false, std::move(rules));
  }
  void restart_as(std::string name, std::string was) {
    another_process();
    line_->name = std::move(name);
    line_->was = std::move(was);
    line_->start(false);
  }
  /// Prepares a new process without starting it.
  void another_process() {
    const ScriptedWorld world = *line_->world;
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = world;
  }
  void remove(int from, int to) {
    for (int i = from; i < to; ++i) line_->world->resources.erase(thing(i));
  }
  std::string reasons() {
    std::string out;
    for (const auto& coverage : report_.coverage) {
      for (const auto& reason : coverage.reasons) out += reason + "\n";
    }
    return out;
  }
  void refresh() { report_ = line_->refresh(); }
  /// Returns the drifts of that operation, open or ended.
  std::vector<core::Drift> all(core::Operation operation) {
    std::vector<core::Drift> out;
    for (auto& drift : line_->drifts(true)) {
      if (drift.resource.kind == "thing" && drift.operation == operation) out.push_back(std::move(drift));
    }
    return out;
  }

  TempDir dir_;
  std::unique_ptr<EngineLine> line_;
  engine::CycleReport report_;
};

}  // namespace driftd::test
