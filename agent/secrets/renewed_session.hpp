// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>

#include "config/config.hpp"
#include "core/ports/session.hpp"
#include "secrets/file_secrets.hpp"
#include "secrets/program_values.hpp"

namespace driftd::secrets {

/// One look at a time in the whole agent: a file system that hangs costs one thread of the io pool, whoever has files
/// on it. Core thread, but for the look.
struct FileLooks {
  std::function<std::vector<FileSecrets::Found>(const std::vector<FileSecrets::FileToRead>&, bool)> look =
      FileSecrets::look;
  std::optional<std::chrono::steady_clock::time_point> since;  ///< of the one under way
  std::string backend;                                         ///< whose file
  std::filesystem::path file;                                  ///< is looked at
  Nanos wall = 0;
  std::atomic<bool> begun = false;  ///< it has a thread
  bool reported = false;            ///< that it hangs
  /// `secret file PATH: its file system has not answered since …`; empty: it has.
  std::string hang() const;
};

/// What sessions whose secrets come from programs and files need of the agent.
struct RenewalOptions {
  asio::any_io_executor core, io;
  const Clock* clock = nullptr;
  std::shared_ptr<core::SessionFactory> factory;                     ///< opens the sessions below
  std::function<void(core::SessionEvent)> on_event;                  ///< program_failed, secret_file_failed
  std::function<void(const std::string&, bool)> on_program;          ///< a run ended: backend, ok
  std::shared_ptr<FileLooks> looks = std::make_shared<FileLooks>();  ///< shared by all
};

/// A backend's session whose secrets come from programs and files, and may change. It opens the real session with the
/// first answers of the programs; at once, where there are files only. When a secret changes it opens another session
/// with the new ones. The old one serves until the new one answers, and ends the calls that are under way on it.
/// info(), refresh() and health() look at the files, so each cycle does; they are read again when the system refuses
/// what was read. Until programs have answered, and once their answers expired, calls are `unavailable` and say why.
/// Core thread only.
class RenewedSession final : public core::Session, public std::enable_shared_from_this<RenewedSession> {
 public:
  RenewedSession(RenewalOptions options, core::SessionSpec spec);
  ~RenewedSession() override;
  RenewedSession(const RenewedSession&) = delete;
  RenewedSession& operator=(const RenewedSession&) = delete;
  /// Runs the programs, or opens the session where there are none; once, after construction.
  Status start(const std::vector<config::ProgramUse>& programs, std::vector<config::FileUse> files);

  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override;
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest request, core::PageHandler on_page) override;
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId> ids, std::chrono::milliseconds deadline) override;
  Task<Result<core::HealthReport>> health() override;
  Task<Status> watch(std::string cursor, core::PageHandler on_page) override;
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId id, std::vector<core::Change> changes) override;
  Task<Result<core::DiscoverOutcome>> discover() override;
  Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) override;
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest request) override;
  core::WorkerStatus status() const override;
  Status resume() override;
  void on_change(std::function<void()> handler) override { changed_ = std::move(handler); }
  Task<void> stop() override;

 private:
  /// A session below, with the calls that it is at (a watch is none: it ends when another one serves).
  struct Inner {
    std::shared_ptr<core::Session> session;
    int calls = 0;
  };
  /// One call on it.
  struct Use {
    std::shared_ptr<Inner> inner;
    explicit Use(std::shared_ptr<Inner> of = nullptr) : inner(std::move(of)) {
      if (inner) ++inner->calls;
    }
    Use(Use&& other) noexcept : inner(std::move(other.inner)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(inner, other.inner);
      return *this;
    }
    ~Use() {
      if (inner) --inner->calls;
    }
    core::Session* operator->() const { return inner->session.get(); }
  };
  Task<Result<Use>> use(std::chrono::milliseconds most);
  void run_programs(const std::vector<config::ProgramUse>& uses);
  void look_at_files(bool refused);
  Task<bool> may_look();
  Task<std::vector<FileSecrets::Found>> look_at_each(std::vector<FileSecrets::FileToRead> asked, bool refused);
  void report_hang();
  Task<void> wait_until_settled();
  static Task<void> look(std::shared_ptr<RenewedSession> self);
  void use_file_changes(FileSecrets::FileChanges news);
  Task<void> follow_files();
  void note_refusal(const Error& error);
  Task<void> pause(std::chrono::milliseconds most);
  void wake();
  void use_values(std::map<std::string, std::string> values);
  void stop_without_value(std::string why);
  static Task<void> renew(std::shared_ptr<RenewedSession> self);
  static Task<void> retire(std::shared_ptr<RenewedSession> self, std::shared_ptr<Inner> old);
  void serve(std::shared_ptr<Inner> next);
  Result<std::shared_ptr<Inner>> open();
  void keep_current(std::string why);
  void try_again();
  void remember(const core::WorkerStatus& old);

  const RenewalOptions options_;
  core::SessionSpec spec_;                 ///< with the newest answers
  std::shared_ptr<ProgramValues> values_;  ///< null: no program is asked
  std::optional<FileSecrets> files_;
  std::shared_ptr<Inner> inner_;  ///< serves; null: there is no answer (any more)
  std::shared_ptr<Inner> next_;   ///< is tried, to take over
  std::string missing_;           ///< why; empty: the programs still run for the first time
  std::string takeover_error_;    ///< why no session with the newest answers serves: the next cycle opens another one
  core::WorkerStatus past_;       ///< counts of those that served before
  std::function<void()> changed_;
  std::list<asio::steady_timer*> waiting_;
  std::uint64_t newest_version_ = 0, served_version_ = 0;  ///< answers, counted
  bool renewing_ = false, stopping_ = false;
  bool looking_ = false, refused_ = false;  ///< at the files; the system refused what was read from them
  bool calls_refused_ = false;              ///< calls were refused since the last one served
  bool unhealthy_ = false;                  ///< the last refresh or health probe failed
  int tasks_ = 0;                           ///< renewals and retirements under way
};

/// `options.factory`, with a RenewedSession for each backend of the config whose secrets come from programs or files.
/// The config as it was loaded: plain settings are references yet, for their files are followed, too.
std::shared_ptr<core::SessionFactory> with_secrets(RenewalOptions options, const config::Config& config);

}  // namespace driftd::secrets
