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
/// files change. Made by make_session_factory(); sessions hold no reference to it and may outlive it. Core thread; only
/// the bytes of files are read elsewhere (HostOptions::io). factory_scan.cpp has the scan, factory.cpp the rest.
class Factory final : public core::SessionFactory, public std::enable_shared_from_this<Factory> {
 public:
  explicit Factory(HostOptions options);
  ~Factory() override;
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

  /// Describes the files that are new, changed or due for another try; what is known of the others is repeated.
  Task<std::vector<ScanResult>> scan() override;
  /// Fails only if the session may not wait for its plugin: `not_found`, with the providers that there are, if none has
  /// the name; else as the file was refused. Finds an id or a type only after a scan, a path also before.
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override;
  void on_event(std::function<void(core::SessionEvent)> handler) override { *handler_ = std::move(handler); }
  Status resume(const std::string& backend) override;
  void watch(bool on) override;

 private:
  using Bytes = std::shared_ptr<const ipc::PluginFile>;
  /// What the last scan found out about one file.
  struct ScannedFile {
    Stamp stamp;              ///< of the file then; with another one it is read again
    Bytes bytes;              ///< sealed copy; null if it could not be read
    std::string sha256, pin;  ///< as in ScanResult
    Result<std::shared_ptr<const core::ProviderInfo>> info;
    Steady::time_point tried{};  ///< when a worker last described it
    int deaths = 0;              ///< how many workers in a row died while they described it
  };
  struct ScanBatch;

  /// A scan that nobody asked for: something changed, or a retry is due.
  static Task<void> rescan(std::shared_ptr<Factory> self);
  /// Rescans at once if a worker died while it described a file. Called when a session waits for its plugin.
  void request_rescan();
  Steady::time_point next_retry(const ScannedFile& seen) const;  ///< max() if none is needed
  void schedule_retry();                                         ///< rescans at the next of them
  Task<void> run_scan(bool changed);
  Task<void> scan_all(bool changed);
  static Task<void> scan_into(std::shared_ptr<Factory> self, std::shared_ptr<ScanBatch> batch, std::string file,
                              bool changed);
  Task<ScannedFile> scan_file(std::string file, bool changed);
  Task<Result<Bytes>> read(std::string file);  ///< fails as PluginFile::open_sealed does
  Task<Result<std::shared_ptr<const core::ProviderInfo>>> describe(std::string file, Bytes bytes);
  void report_refusal(const std::string& file, const ScannedFile& seen);
  void read_lock();  ///< fills plugin_lock_ or lock_broken_
  Status admit(const std::string& file, ScannedFile& seen) const;
  std::vector<std::string> all_files() const;
  void index();      ///< fills by_name_
  void reconcile();  ///< switches every session to the file that its provider's name leads to now
  void reconcile(const std::shared_ptr<SupervisedSession>& session);
  std::vector<ScanResult> found() const;                             ///< what scan() returns
  std::vector<std::shared_ptr<SupervisedSession>> sessions() const;  ///< those that are still in use
  /// Returns the plugin of an id, a type or a path; fails as open() does. `sink`: a sink plugin instead of a provider.
  Result<Plugin> find(const std::string& provider, bool sink) const;
  Error not_found(const std::string& provider, bool sink) const;  ///< with the names that there are and the nearest one
  Plugin plugin_of(const std::string& file) const;                ///< without bytes and info if it was not scanned

  const HostOptions options_;
  PluginLock plugin_lock_;                      ///< as last read without an error
  std::optional<Error> lock_broken_;            ///< why the lock cannot be used: then no file may run
  std::map<std::string, ScannedFile> scanned_;  ///< by path
  std::map<std::string, std::string> by_name_;  ///< provider id or type → file
  std::map<std::string, std::string> sinks_;    ///< id of a sink plugin → file
  std::vector<std::weak_ptr<SupervisedSession>> sessions_;
  std::shared_ptr<FolderWatch> watch_;  ///< null while the folders are not watched
  asio::steady_timer retry_timer_;
  bool scanning_ = false, closing_ = false, rescan_requested_ = false;
  std::vector<std::weak_ptr<Supervisor>> describing_;             ///< workers of the running scan
  std::deque<std::shared_ptr<asio::steady_timer>> scan_waiters_;  ///< cancelled when the running scan ends
  const std::shared_ptr<std::function<void(core::SessionEvent)>> handler_ =
      std::make_shared<std::function<void(core::SessionEvent)>>();
};

}  // namespace driftd::host
