// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>

#include "host/folder_watch.hpp"
#include "host/host.hpp"
#include "host/plugin_lock.hpp"
#include "host/session.hpp"

namespace driftd::host {

/// Knows the plugin files and opens sessions on them. While it watches the folders, it upgrades the sessions when their
/// files change.
class Factory final : public core::SessionFactory, public std::enable_shared_from_this<Factory> {
 public:
  explicit Factory(HostOptions options);
  ~Factory() override;
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

  Task<std::vector<ScanResult>> scan() override;
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override;
  void on_event(std::function<void(core::SessionEvent)> handler) override { *handler_ = std::move(handler); }
  void watch(bool on) override;

 private:
  using Bytes = std::shared_ptr<const ipc::PluginFile>;
  struct ScannedFile {
    Stamp stamp;
    Bytes bytes;
    std::string sha256, pin;
    Result<std::shared_ptr<const core::ProviderInfo>> info;
    Steady::time_point tried{};  ///< when a worker last described it
    int deaths = 0;              ///< how many workers in a row died while they described it
  };
  struct ScanBatch;

  static Task<void> rescan(std::shared_ptr<Factory> self);
  /// Rescans at once if a worker died while it described a file. Called when a session waits for its plugin.
  void request_rescan();
  Steady::time_point next_retry(const ScannedFile& seen) const;
  void schedule_retry();
  Task<void> run_scan(bool changed);
  Task<void> scan_all(bool changed);
  static Task<void> scan_into(std::shared_ptr<Factory> self, std::shared_ptr<ScanBatch> batch, std::string file,
                              bool changed);
  Task<ScannedFile> scan_file(std::string file, bool changed);
  Task<Result<Bytes>> read(std::string file);
  Task<Result<std::shared_ptr<const core::ProviderInfo>>> describe(std::string file, Bytes bytes);
  void report_refusal(const std::string& file, const ScannedFile& seen);
  void read_lock();
  Status admit(const std::string& file, ScannedFile& seen) const;
  std::vector<std::string> all_files() const;
  void index();
  void reconcile();
  void reconcile(const std::shared_ptr<SupervisedSession>& session);
  std::vector<ScanResult> found() const;
  std::vector<std::shared_ptr<SupervisedSession>> sessions() const;
  Result<Plugin> find(const std::string& provider) const;
  Error not_found(const std::string& provider) const;
  Plugin plugin_of(const std::string& file) const;

  const HostOptions options_;
  PluginLock plugin_lock_;
  std::optional<Error> lock_broken_;
  std::map<std::string, ScannedFile> scanned_;
  std::map<std::string, std::string> by_name_;  ///< provider id or type → file
  std::vector<std::weak_ptr<SupervisedSession>> sessions_;
  std::shared_ptr<FolderWatch> watch_;
  asio::steady_timer retry_timer_;
  bool scanning_ = false, closing_ = false, rescan_requested_ = false;
  std::vector<std::weak_ptr<Supervisor>> describing_;
  std::deque<std::shared_ptr<asio::steady_timer>> scan_waiters_;
  const std::shared_ptr<std::function<void(core::SessionEvent)>> handler_ =
      std::make_shared<std::function<void(core::SessionEvent)>>();
};

}  // namespace driftd::host
