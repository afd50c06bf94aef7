// SPDX-License-Identifier: Apache-2.0
// A session of a provider whose records are settled as the engine settles them, and what a refresh of it takes.
#pragma once

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "clock.hpp"
#include "engine/index.hpp"
#include "host/host.hpp"

namespace driftd::bench {

/// Processor time of a process; 0 if it is gone.
inline double cpu_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 2)));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Round {
  double wall = 0, agent = 0, worker = 0;  ///< seconds; agent, worker: of CPU, of this process and of the worker
  std::size_t settled = 0, fresh = 0;      ///< records whose digest was known, and others
};

/// A session and what the engine remembers of its resources.
class Side {
 public:
  Side(core::SessionFactory& factory, asio::io_context& core, const std::string& plugin, std::string settings,
       core::SessionSpec::Isolation isolation)
      : core_(core) {
    core::SessionSpec spec;
    spec.backend = "bench";
    spec.provider = plugin;
    spec.settings_json = std::move(settings);
    spec.isolation = isolation;
    spec.worker_key = {"0a0b0c0d", {1, 2, 3}};
    spec.digest_seed = 20261125;
    spec.budgets.records = 2'000'000;
    spec.budgets.bytes = 8ull << 30;
    spec.budgets.call = std::chrono::minutes(5);
    auto opened = factory.open(spec);
    if (!opened) throw std::runtime_error(opened.error().message);
    session_ = *opened;
  }
  ~Side() {
    bool done = false;
    asio::co_spawn(core_, session_->stop(), [&done](std::exception_ptr) { done = true; });
    core_.restart();
    while (!done) core_.run_one();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// One refresh. Throws if it fails.
  Round refresh(bool digests = false) {
    settled_ = fresh_ = short_ = bytes_ = 0;
    const int begun_by = session_->status().pid;
    const double agent = own_cpu();
    const double worker = begun_by > 0 ? cpu_of(begun_by) : 0;
    const auto begun = std::chrono::steady_clock::now();
    std::optional<Status> status;
    asio::co_spawn(core_, all(digests),
                   [&status](std::exception_ptr, Status value) { status.emplace(std::move(value)); });
    core_.restart();
    while (!status) core_.run_one();
    if (!*status) throw std::runtime_error(status->error().message);
    const int pid = session_->status().pid;  // it started for the first refresh
    return {seconds_since(begun), own_cpu() - agent, pid > 0 ? cpu_of(pid) - worker : 0, settled_, fresh_};
  }
  std::size_t digests() const { return short_; }  ///< records of the last refresh that came as digests
  std::uint64_t bytes() const { return bytes_; }  ///< of the bodies of the last refresh
  const std::vector<std::string>& sample() const { return sample_; }

 private:
  Task<Status> all(bool digests) {
    const core::PageHandler handler = [this](core::RecordPage page) { return settle(std::move(page)); };
    core::RefreshRequest request;
    request.full = true;
    request.digests = digests;
    const auto outcome = co_await session_->refresh(std::move(request), handler);
    if (!outcome) co_return fail(outcome.error());
    co_return Status{};
  }
  /// As the engine does it: by identity, then by digest.
  Task<Status> settle(core::RecordPage page) {
    for (const auto& record : page.records) {
      short_ += record.digest_only ? 1 : 0;
      bytes_ += record.body.size();
      if (sample_.size() < 1'000 && !record.digest_only) sample_.push_back(record.body);
      const auto* known = index_.find(record.id);
      if (known != nullptr && known->digest == record.digest) {
        ++settled_;
        continue;
      }
      ++fresh_;
      engine::Index::Entry entry;
      entry.digest = record.digest;
      index_.put(record.id, entry);
    }
    co_return Status{};
  }

  asio::io_context& core_;
  std::size_t settled_ = 0, fresh_ = 0, short_ = 0;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<core::Session> session_;
  engine::Index index_;
  std::vector<std::string> sample_;
};

}  // namespace driftd::bench
