// SPDX-License-Identifier: Apache-2.0
// Scanning: asks workers to describe the plugin files, and decides which files may run.
#include <fmt/format.h>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "host/factory.hpp"

namespace driftd::host {
namespace {

using Info = std::shared_ptr<const core::ProviderInfo>;

constexpr auto kSoonest = std::chrono::milliseconds(100);  // before a file is described again after its worker died
constexpr std::size_t kMaxParallel = 8;                    // files that are described at the same time
constexpr auto kTryAgain = std::chrono::minutes(1);  // before a refused file is tried again when another one changed

}  // namespace

/// Runs one scan at a time: two scans of the same new file would start two workers for it.
Task<void> Factory::run_scan(bool changed) {
  while (scanning_) {
    const auto wakeup = std::make_shared<asio::steady_timer>(options_.core, asio::steady_timer::time_point::max());
    scan_waiters_.push_back(wakeup);
    co_await wakeup->async_wait(asio::as_tuple(asio::use_awaitable));
  }
  struct ScanGuard {
    Factory& factory;
    explicit ScanGuard(Factory& f) : factory(f) { factory.scanning_ = true; }
    ~ScanGuard() {
      factory.scanning_ = false;
      for (const auto& wakeup : std::exchange(factory.scan_waiters_, {})) wakeup->cancel();
    }
  };
  {
    const ScanGuard looking(*this);
    read_lock();
    co_await scan_all(changed);
    rescan_requested_ = false;
    index();
  }
  if (!watch_) co_return;
  reconcile();
  schedule_retry();
}

/// Returns when a file must be described again because its worker died. Such a death proves nothing about the file:
/// memory may have run out, or somebody killed the worker. The delay grows like the one between restarts of a backend's
/// worker.
Steady::time_point Factory::next_retry(const ScannedFile& seen) const {
  if (seen.deaths == 0 || seen.info) return Steady::time_point::max();
  if (seen.deaths >= options_.crashes_to_park) return seen.tried + options_.parked;
  const int doubled = std::min(seen.deaths - 1, 16);
  return seen.tried + std::min(options_.restart_max, options_.restart_first * (1 << doubled));
}

void Factory::schedule_retry() {
  auto next = Steady::time_point::max();
  for (const auto& [file, seen] : scanned_) next = std::min(next, next_retry(seen));
  if (next == Steady::time_point::max()) return;
  retry_timer_.expires_at(next);
  retry_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& stopped) {
    const auto self = weak.lock();
    if (!stopped && self && self->watch_) asio::co_spawn(self->options_.core, rescan(self), fatal);
  });
}

void Factory::request_rescan() {
  const auto now = Steady::now();
  const auto waits = [&](const auto& item) {
    return item.second.deaths > 0 && !item.second.info && now - item.second.tried >= kSoonest;
  };
  if (closing_ || rescan_requested_ || std::none_of(scanned_.begin(), scanned_.end(), waits)) return;
  rescan_requested_ = true;
  asio::co_spawn(options_.core, rescan(shared_from_this()), fatal);
}

void Factory::read_lock() {
  auto pins = read_plugin_lock(options_.plugin_lock, options_.lock_required);
  const Status rights = pins && pins->locked ? ipc::check_file_rights(options_.plugin_lock) : Status{};
  lock_broken_.reset();
  if (!pins) lock_broken_ = pins.error();
  if (!rights) lock_broken_ = rights.error();
  if (pins) plugin_lock_ = std::move(*pins);
}

/// The files of one scan, some of which are described at the same time; it is finished when `running` is 0.
struct Factory::ScanBatch {
  explicit ScanBatch(const asio::any_io_executor& core) : one_ended(core) {}
  std::map<std::string, ScannedFile> seen;
  std::size_t running = 0;
  asio::steady_timer one_ended;
};

/// A plugin that hangs in load delays the other files of its batch until the deadline of a load.
Task<void> Factory::scan_all(bool changed) {
  const auto batch = std::make_shared<ScanBatch>(options_.core);
  const auto files = all_files();
  std::size_t next = 0;
  while (next < files.size() || batch->running > 0) {
    if (next < files.size() && batch->running < kMaxParallel) {
      ++batch->running;
      asio::co_spawn(options_.core, scan_into(shared_from_this(), batch, files[next++], changed), fatal);
      continue;
    }
    batch->one_ended.expires_at(asio::steady_timer::time_point::max());
    co_await batch->one_ended.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  scanned_ = std::move(batch->seen);
}

Task<void> Factory::scan_into(std::shared_ptr<Factory> self, std::shared_ptr<ScanBatch> batch, std::string file,
                              bool changed) {
  ScannedFile seen = co_await self->scan_file(file, changed);
  if (!self->closing_) self->report_refusal(file, seen);
  batch->seen.insert_or_assign(std::move(file), std::move(seen));
  --batch->running;
  batch->one_ended.cancel();
}

/// Reports each reason once, not at each scan.
void Factory::report_refusal(const std::string& file, const ScannedFile& seen) {
  const auto before = scanned_.find(file);
  const bool known = before != scanned_.end() && !before->second.info && !seen.info &&
                     before->second.info.error().message == seen.info.error().message;
  if (seen.info || known) return;
  const std::string& why = seen.info.error().message;
  const std::string message = why.find(file) == std::string::npos ? file + ": " + why : why;
  log::room("host").warn("plugin refused: {}", message);
  if (*handler_) (*handler_)({"", "plugin_refused", message});
}

/// Reads off the core thread, because a plugin may have many megabytes and its disk may be slow.
Task<Result<Factory::Bytes>> Factory::read(std::string file) {
  struct Work {
    std::string file;
    Result<Bytes> operator()() const {
      DRIFTD_TRY(ipc::PluginFile sealed, ipc::PluginFile::open_sealed(file));
      return std::make_shared<const ipc::PluginFile>(std::move(sealed));
    }
  };
  Work work{std::move(file)};
  if (!options_.io) co_return work();
  auto done = co_await run_on(options_.io, std::move(work));
  co_return done;
}

/// Starts a worker that loads the file, describes it and ends.
Task<Result<Info>> Factory::describe(std::string file, Bytes bytes) {
  SupervisorSpec spec;
  spec.session.backend = "scan";
  spec.file = file;
  spec.bytes = std::move(bytes);
  spec.role = WorkerRole::scan;
  const auto supervisor = std::make_shared<Supervisor>(options_, std::move(spec), Supervisor::OnEvent{});
  std::erase_if(describing_, [](const auto& other) { return other.expired(); });
  describing_.push_back(supervisor);
  supervisor->start();
  if (closing_) supervisor->drop();
  Result<Info> info = co_await Supervisor::info(supervisor);
  co_await Supervisor::stop(supervisor);
  co_return info;
}

/// Describes a file, or repeats what is known if the file has not changed. A refused file is tried again when something
/// beside it changed.
Task<Factory::ScannedFile> Factory::scan_file(std::string file, bool changed) {
  ScannedFile out{stamp_of(file), {}, {}, {}, fail(Code::internal, "not described")};
  const auto known = scanned_.find(file);
  const bool same = known != scanned_.end() && known->second.stamp == out.stamp && known->second.bytes;
  const ScannedFile* before = same ? &known->second : nullptr;  // valid until scan_all() ends
  Status rights = same ? ipc::check_file_rights(file) : Status{};
  if (same) out.bytes = before->bytes;
  if (!same) {
    auto bytes = co_await read(file);
    if (bytes) out.bytes = std::move(*bytes);
    if (!bytes) rights = fail(bytes.error());
  }
  if (out.bytes) out.sha256 = out.bytes->sha256();
  if (rights) rights = admit(file, out);
  if (!rights) {
    out.info = fail(rights.error());
    co_return out;
  }
  const bool asked = same && before->pin == out.pin && before->tried != Steady::time_point{};
  const auto now = Steady::now();
  const bool again = changed && asked && !before->info && now - before->tried >= kTryAgain;
  const bool died = asked && !before->info && before->deaths > 0 && (rescan_requested_ || now >= next_retry(*before));
  if (asked && !again && !died) {
    out.info = before->info;
    out.tried = before->tried;
    out.deaths = before->deaths;
    co_return out;
  }
  const int deaths = same ? before->deaths : 0;
  out.tried = now;
  out.info = co_await describe(file, out.bytes);
  if (!out.info && out.info.error().code == Code::unavailable) out.deaths = deaths + 1;
  co_return out;
}

/// Checks a file against the lock, before any of its code runs.
Status Factory::admit(const std::string& file, ScannedFile& seen) const {
  if (lock_broken_) return fail(*lock_broken_);
  if (!plugin_lock_.locked) return {};
  seen.pin = "unpinned";
  DRIFTD_TRY(const std::string pinned, plugin_lock_.of(file));
  seen.pin = pinned == seen.sha256 ? "pinned" : "changed";
  if (pinned == seen.sha256) return {};
  return fail(Code::denied,
              fmt::format("{}: refused, because its bytes are not the pinned ones (sha256 {}…, {} says {}…); "
                          "look at the file, then run `driftd plugin lock`",
                          file, seen.sha256.substr(0, 12), plugin_lock_.file.string(), pinned.substr(0, 12)));
}

/// Returns every plugin file: in the plugin folders, named in the config, or in use by a session; no duplicates.
std::vector<std::string> Factory::all_files() const {
  auto out = plugins_in(options_.plugin_dirs);
  const auto add = [&](const std::string& file) {
    if (stamp_of(file).there() && std::find(out.begin(), out.end(), file) == out.end()) out.push_back(file);
  };
  for (const auto& file : options_.plugin_files) add(file.string());
  for (const auto& session : sessions()) add(session->plugin().file);
  return out;
}

}  // namespace driftd::host
