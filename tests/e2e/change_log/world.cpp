// SPDX-License-Identifier: Apache-2.0
#include "e2e/change_log/world.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <csignal>
#include <future>
#include <sstream>

#include "grpc/change_log_client.hpp"
#include "support/agent.hpp"
#include "support/operations.hpp"
#include "unit/store/drafts.hpp"

namespace driftd::test {
namespace {

constexpr std::chrono::milliseconds kPageEvery{50};

store::Settings settings_of(const std::string& data_dir) {
  store::Settings out;
  out.data_dir = data_dir;
  out.logs_changes = [](const std::string&) { return true; };
  return out;
}

core::PageCommit page_from(int first, int count, std::size_t padding) {
  core::PageCommit page = page_of({});
  for (int i = first; i < first + count; ++i) page.enforcements.push_back(ended_operation(i, padding));
  return page;
}

}  // namespace

Sidecar::Sidecar(std::string listen, std::string file, std::vector<std::string> options)
    : listen_(std::move(listen)),
      file_(std::move(file)),
      log_(file_ + ".stderr"),
      options_(std::move(options)) {}

void Sidecar::start() {
  std::vector<std::string> command{Agent::binary(), "changelog-sidecar", "--listen", listen_, "--output", file_};
  command.insert(command.end(), options_.begin(), options_.end());
  child_ = Child(std::move(command), {log_, {}, {}});
}

int Sidecar::stop() {
  child_.signal(SIGTERM);
  return child_.wait(std::chrono::seconds(15));
}

std::uintmax_t Sidecar::size() const {
  std::error_code missing;
  const auto out = std::filesystem::file_size(file_, missing);
  return missing ? 0 : out;
}

std::vector<nlohmann::json> Sidecar::lines() const {
  std::vector<nlohmann::json> out;
  if (!std::filesystem::exists(file_)) return out;
  std::istringstream text(read_file(file_));
  for (std::string line; std::getline(text, line);) {
    if (text.eof()) break;  // it is still being written
    out.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_TRUE(out.back().is_object()) << line;
  }
  return out;
}

std::map<std::string, int> Sidecar::counts() const {
  std::map<std::string, int> out;
  for (const auto& line : lines()) ++out[line.value("operation_id", "")];
  return out;
}

ChangeLogRun::ChangeLogRun(const std::string& data_dir, rpc::ChangeLogTarget target, std::int64_t max_backlog_bytes) {
  auto opened = store::SqliteStore::open(settings_of(data_dir), store_pool_.get_executor(), io_.get_executor(), clock_);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  store_ = std::move(*opened);
  log_ = store_->change_log();
  receiver_ = rpc::open_change_log(std::move(target), "test", "default", core_.get_executor());
  delivery::ChangeLogNeeds needs;
  needs.core = core_.get_executor();
  needs.store = log_.get();
  needs.receiver = receiver_.get();
  needs.clock = &clock_;
  needs.max_backlog_bytes = max_backlog_bytes;
  runner_ = std::make_shared<delivery::ChangeLogRunner>(std::move(needs));
  asio::post(core_, [this] { runner_->start(); });
  thread_ = std::thread([this] { core_.run(); });
  EXPECT_TRUE(wait(store_->commit(registration())));
}

ChangeLogRun::~ChangeLogRun() {
  stop_producing();
  asio::post(core_, [this] { runner_->stop(); });
  work_.reset();
  thread_.join();
  EXPECT_TRUE(runner_->idle());
  io_.join();
  store_pool_.join();
}

template <class T>
T ChangeLogRun::wait(Task<T> task) {
  return asio::co_spawn(core_, std::move(task), asio::use_future).get();
}

void ChangeLogRun::commit(int first, int count, std::size_t padding) {
  EXPECT_TRUE(wait(store_->commit(page_from(first, count, padding))));
  asio::post(core_, [this] { runner_->wake(); });
}

Task<void> ChangeLogRun::produce_pages(int count) {
  asio::steady_timer timer(core_, std::chrono::steady_clock::now());
  while (!stops_) {
    core::PageCommit page = page_from(produced_, count, 600);
    const auto done = co_await store_->commit(std::move(page));
    EXPECT_TRUE(done);
    produced_ += count;
    runner_->wake();
    timer.expires_at(timer.expiry() + kPageEvery);  // a late page is followed by the next one at its own time
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  producing_ = false;
}

void ChangeLogRun::produce(int count) {
  producing_ = true;
  asio::co_spawn(core_, produce_pages(count), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
}

void ChangeLogRun::stop_producing() {
  stops_ = true;
  EXPECT_TRUE(eventually([this] { return !producing_; }));
}

core::ChangeLogView ChangeLogRun::view() {
  std::packaged_task<core::ChangeLogView()> look([this] { return runner_->view(); });
  auto out = look.get_future();
  asio::post(core_, [&look] { look(); });
  return out.get();
}

core::ChangeLogPosition ChangeLogRun::position() {
  const auto found = wait(log_->position());
  EXPECT_TRUE(found);
  return found.value_or(core::ChangeLogPosition{});
}

void store_operations(const std::string& data_dir, int count) {
  const SystemClock clock;
  asio::io_context core;
  asio::thread_pool store_pool(1), io(1);
  auto opened = store::SqliteStore::open(settings_of(data_dir), store_pool.get_executor(), io.get_executor(), clock);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto commit = [&](core::PageCommit page) {
    auto done = asio::co_spawn(core, (*opened)->commit(std::move(page)), asio::use_future);
    core.restart();
    core.run();
    EXPECT_TRUE(done.get());
  };
  commit(registration());
  for (int i = 0; i < count; i += 100) commit(page_from(i, std::min(100, count - i), 600));
  opened->reset();
  store_pool.join();
  io.join();
}

}  // namespace driftd::test
