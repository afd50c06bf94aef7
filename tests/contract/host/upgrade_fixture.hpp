// SPDX-License-Identifier: Apache-2.0
// A session that runs the plugin `lives` from a folder in which the test installs, replaces and removes files. The
// versions of the plugin are in provider/lives.cpp.
#pragma once

#include <gmock/gmock.h>
#include <algorithm>
#include <filesystem>
#include <map>

#include "contract/host/core_thread.hpp"
#include "host/plugin_lock.hpp"
#include "support/process.hpp"

namespace driftd::test {

class Upgrade : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = dir_.file("plugins");
    options_ = host_options(core_);
    options_.plugin_dirs = {folder_};
    options_.plugin_lock = dir_.file("driftd.lock");
    options_.grace = std::chrono::milliseconds(500);
    options_.restart_first = options_.restart_max = std::chrono::milliseconds(5);
    factory_ = host::make_session_factory(options_);
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
  }
  void TearDown() override {
    factory_->watch(false);
    if (session_) core_.run(session_->stop());
  }
  /// Installs a version by rename, as `install` and package managers do.
  void install(const std::string& version, const std::string& name = "lives") {
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(DRIFTD_BINARY_DIR "/tests/lives/" + version + ".so", folder_ + "/new",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(folder_ + "/new", file(name));
  }
  std::string file(const std::string& name = "lives") const { return folder_ + "/" + name + ".so"; }
  core::Session& open(const std::string& settings = "{}",
                      core::SessionSpec::Isolation isolation = core::SessionSpec::Isolation::process) {
    (void)core_.run(factory_->scan());
    core::SessionSpec spec;
    spec.backend = "b";
    spec.provider = "lives";
    spec.settings_json = settings;
    spec.isolation = isolation;
    spec.wait_for_plugin = true;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    session_ = factory_->open(spec).value();
    session_->on_change([this] { ++changes_; });
    factory_->watch(true);
    return *session_;
  }
  /// Returns the version of the plugin, or why it is not known.
  std::string version() {
    const auto info = core_.run(session_->info());
    return info ? (*info)->version : info.error().message;
  }
  Result<core::RefreshOutcome> refresh() { return core_.run(session_->refresh({}, keep(pages_))); }
  /// Returns true if an event contains `part`.
  bool was_reported(const std::string& part) const {
    return std::any_of(events_.begin(), events_.end(),
                       [&](const auto& e) { return e.find(part) != std::string::npos; });
  }
  /// Scans the folder and returns what it found in this file.
  core::SessionFactory::ScanResult found(const std::string& path) {
    for (auto& one : core_.run(factory_->scan())) {
      if (one.file == path) return one;
    }
    return {path, fail(Code::not_found, "not found by the scan")};
  }
  /// Writes driftd.lock: the path of each file and the SHA-256 of its bytes in hex.
  void lock(const std::map<std::string, std::string>& hexes) {
    std::filesystem::rename(dir_.write("lock.new", host::render_plugin_lock(hexes)), options_.plugin_lock);
  }

  TempDir dir_;
  std::string folder_;
  Core core_;
  host::HostOptions options_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::vector<std::string> events_;
  int changes_ = 0;  ///< how often the session reported that another version runs
};

}  // namespace driftd::test
