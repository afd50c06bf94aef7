// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>

#include "config/config.hpp"
#include "core/ports/session.hpp"
#include "secrets/file_secrets.hpp"
#include "secrets/program_values.hpp"
#include "secrets/secret_uses.hpp"

namespace driftd::secrets {

/// Allows one look at files at a time in the whole agent, so that a file system that hangs costs one thread of the io
/// pool, however many backends have files on it. Core thread, except for the look itself.
struct FileLooks {
  std::function<std::vector<FileSecrets::Found>(const std::vector<FileSecrets::FileToRead>&, bool)> look =
      FileSecrets::look;
  std::optional<std::chrono::steady_clock::time_point> since;  ///< start of the look that is under way
  std::string backend;                                         ///< backend whose file is looked at
  std::filesystem::path file;                                  ///< file that is looked at
  Nanos wall = 0;
  std::atomic<bool> begun = false;  ///< the look has got a thread
  bool reported = false;            ///< the hang was reported
  /// Returns `secret file PATH: its file system has not answered since …`. Empty if it does not hang.
  std::string hang() const;
};

/// What a RenewedSession needs of the agent.
struct RenewalOptions {
  asio::any_io_executor core, io;
  const Clock* clock = nullptr;
  std::shared_ptr<core::SessionFactory> factory;             ///< opens the real sessions
  std::function<void(core::SessionEvent)> on_event;          ///< called for program_failed and secret_file_failed
  std::function<void(const std::string&, bool)> on_program;  ///< called after each run: backend, ok
  std::shared_ptr<FileLooks> looks = std::make_shared<FileLooks>();  ///< shared by all sessions
};

/// The session of a backend whose secrets come from programs and files, and may change. It opens the real session once
/// the programs have answered, or at once if there are only files. If a secret changes, it opens another session with
/// the new secret; the old one serves until the new one answers, and finishes its calls. info(), refresh() and health()
/// look at the files, so each cycle does; the files are read again if the backend refuses a secret. Until the programs
/// have answered, and after their answers expired, calls return `unavailable` with the reason. Core thread only.
class RenewedSession final : public core::Session, public std::enable_shared_from_this<RenewedSession> {
 public:
  RenewedSession(RenewalOptions options, core::SessionSpec spec);
  ~RenewedSession() override;
  RenewedSession(const RenewedSession&) = delete;
  RenewedSession& operator=(const RenewedSession&) = delete;
  /// Runs the programs, or opens the session if there are none. To be called once, after construction.
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
  /// A real session and the number of its calls under way. A watch does not count: it ends when another session serves.
  struct Inner {
    std::shared_ptr<core::Session> session;
    int calls = 0;
  };
  /// Counts one call on an Inner for as long as it lives.
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
  Task<Result<Use>> use(std::chrono::milliseconds max_wait);
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
  Task<void> pause(std::chrono::milliseconds max_wait);
  void wake();
  void use_values(std::map<std::string, std::string> values);
  void stop_without_value(std::string why);
  static Task<void> renew(std::shared_ptr<RenewedSession> self);
  static Task<void> retire(std::shared_ptr<RenewedSession> self, std::shared_ptr<Inner> old);
  void serve(std::shared_ptr<Inner> next);
  Result<std::shared_ptr<Inner>> open();
  void note_failed_takeover(std::string why);
  void retry_takeover();
  void add_totals(const core::WorkerStatus& old);

  const RenewalOptions options_;
  core::SessionSpec spec_;                 ///< with the newest secrets
  std::shared_ptr<ProgramValues> values_;  ///< null if there are no programs
  std::optional<FileSecrets> files_;
  std::shared_ptr<Inner> inner_;  ///< the active session; null while no secret value is available
  std::shared_ptr<Inner> next_;   ///< the candidate with new values, on trial
  std::string missing_;           ///< why there is none; empty while the programs run for the first time
  std::string takeover_error_;    ///< why no session with the newest values serves; the next cycle opens another one
  core::WorkerStatus past_;       ///< totals of the earlier sessions
  std::function<void()> changed_;
  std::list<asio::steady_timer*> waiting_;
  std::uint64_t newest_version_ = 0, served_version_ = 0;  ///< versions of the values: newest, active
  bool renewing_ = false, stopping_ = false;
  bool looking_ = false, refused_ = false;  ///< a look at the files is under way; the backend refused a secret from
                                            ///< them
  bool calls_refused_ = false;              ///< calls were refused since the last success
  bool unhealthy_ = false;                  ///< the last refresh or health probe failed
  int tasks_ = 0;                           ///< number of renewals and retirements under way
};

/// Wraps `options.factory` so that each backend whose secrets come from programs or files gets a RenewedSession.
std::shared_ptr<core::SessionFactory> with_secrets(RenewalOptions options, std::shared_ptr<const SecretUses> uses);
/// The same for backends that do not change.
std::shared_ptr<core::SessionFactory> with_secrets(RenewalOptions options, const config::Config& config);

}  // namespace driftd::secrets
