// SPDX-License-Identifier: Apache-2.0
#include "app/store_check.hpp"

#include "base/end_process.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/step_times.hpp"
#include "store/start_check.hpp"

namespace driftd::app {
namespace {

constexpr int kDisk = 74;  // sysexits.h, EX_IOERR
constexpr std::chrono::hours kLongest{6};
constexpr std::string_view kDamaged = "damaged: ";

config::ProgramUse verify(const std::string& driftd, const std::filesystem::path& file) {
  std::error_code unreadable;
  config::ProgramUse out;
  out.program.path = driftd.empty() ? std::filesystem::read_symlink("/proc/self/exe", unreadable).string() : driftd;
  out.program.timeout = kLongest;
  out.command = {out.program.path, "verify", "--background", file.string()};
  return out;
}

}  // namespace

StoreCheck::StoreCheck(std::filesystem::path data_dir, Executors& executors, std::string driftd)
    : executors_(executors),
      data_dir_(std::move(data_dir)),
      driftd_(std::move(driftd)) {}

void StoreCheck::begin() {
  running_ = true;
  asio::co_spawn(executors_.core, run(), fatal);
}

void StoreCheck::cancel() {
  if (check_) check_->cancel();
}

Task<void> StoreCheck::run() {
  StepTimes times;
  const config::ProgramUse use = verify(driftd_, data_dir_ / "store.db");
  check_ = std::make_shared<secrets::ProgramRun>(executors_.core.get_executor(), executors_.io.get_executor(), use);
  std::shared_ptr<secrets::ProgramRun> self = check_;
  const auto answer = co_await secrets::ProgramRun::run(std::move(self));
  times.end("verify");
  running_ = false;
  if (answer) {
    log::room("store").info("the whole store was checked in {}", times.render());
  } else if (check_->output().starts_with(kDamaged)) {
    end_damaged(check_->output().substr(kDamaged.size(), check_->output().find('\n') - kDamaged.size()));
  } else if (answer.error().code != Code::cancelled) {
    log::room("store").warn("the whole store could not be checked: {}{}{}; `driftd verify {}` checks it",
                            answer.error().message, check_->errors().empty() ? "" : ": ", check_->errors(),
                            (data_dir_ / "store.db").string());
  }
}

void StoreCheck::end_damaged(const std::string& found) const {
  const Status marked = store::mark_suspect(data_dir_, found);
  log::room("store").critical(
      "the store is damaged: {}. The agent ends now, and its next start checks the whole store before it uses any of "
      "it, and repairs it or says what to do{}. systemd and Kubernetes start it again. Check the disk",
      found, marked ? "" : " (only if this is mended first: " + marked.error().message + ")");
  log::room("store").flush();
  end_process(kDisk);
}

}  // namespace driftd::app
