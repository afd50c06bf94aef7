// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <filesystem>

#include "store/rotate.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {

/// A store with digests in each place that may contain one, and rotations of its key.
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
  void fill();
  /// Checks that all digests are those that an agent would make now.
  void expect_under(const store::InstallationKey& key);
  Result<store::Rotated> rotate(std::function<void(std::string_view)> at_step = {},
                                core::LayerKind kind = core::LayerKind::hmac) {
    store::Settings settings;
    settings.data_dir = data();
    settings.at_step = std::move(at_step);
    core::AuditEntry line;
    line.actor = "olga";
    line.reason = "a backup was lost";
    return store::rotate(std::move(settings), line, bench.clock, kind,
                         [this](const store::SlowWork& work) { slow_work_.push_back(work); });
  }
  Result<store::Rotated> rotate_slow() { return rotate({}, kSlow); }
  /// Runs a rotation in a process that is killed at this step. Returns true if it got there.
  bool killed_at(const std::string& step, core::LayerKind kind);
  /// Checks that a failed rotation has changed nothing.
  void expect_untouched(const std::string& key_text, const store::InstallationKey& key) {
    EXPECT_TRUE(read_file(data("installation.key")) == key_text) << "the former key is gone";
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(bench->key().store.layers.size(), 0U);
    EXPECT_TRUE(rotation_events().empty());
    EXPECT_TRUE(bench.get(bench->audit(10)).empty());
    EXPECT_EQ(bench.get(bench->load(backend_row().uid, {{"config", "r1"}}))[0].baseline, sealed(key, 1));
  }
  /// Kills a rotation at each of its steps. Store and key must then both be of before, or both be rotated.
  void kill_at_each_step(core::LayerKind kind);
  /// Returns the bytes of the store and of every file beside it whose name begins like it.
  std::string all_bytes() const {
    std::string out;
    for (const auto& entry : std::filesystem::directory_iterator(data())) {
      if (entry.path().filename().string().starts_with("store")) out += read_file(entry.path().string());
    }
    return out;
  }
  /// Returns the events that report a rotation; pending ones are committed first.
  std::vector<core::StoredEvent> rotation_events() {
    bench.get(bench->announce());
    std::vector<core::StoredEvent> out;
    for (auto& event : bench.get(bench->events(0, 1'000'000))) {
      if (event.agent_event && event.what == "key_rotated") out.push_back(std::move(event));
    }
    return out;
  }

  static constexpr core::LayerKind kSlow = core::LayerKind::slow;
  std::vector<store::SlowWork> slow_work_;  ///< what each rotation announced
};

}  // namespace driftd::test
