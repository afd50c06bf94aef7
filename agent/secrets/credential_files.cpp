// SPDX-License-Identifier: Apache-2.0
#include "secrets/credential_files.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "config/secret_file.hpp"

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxReading = 2;  // half of the threads
constexpr milliseconds kMaxPass{5'000};
constexpr std::int64_t kSettledAgeNs = 1'000'000'000;
constexpr int kMaxTurns = 200;  // waits of 10 ms for a thread

bool is_old(const config::FileMark& mark) {
  const auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  return now.count() - mark.written_ns >= kSettledAgeNs;
}

}  // namespace

/// One reading of all files. Shared with the thread that reads.
struct CredentialFiles::Pass {
  Pass(asio::any_io_executor core, std::vector<std::filesystem::path> given)
      : files(std::move(given)),
        ended(std::move(core)) {}
  const std::vector<std::filesystem::path> files;
  asio::steady_timer ended;
  bool done = false;
  Error error{Code::ok, {}};
  std::vector<Secret> texts;
  std::vector<config::FileMark> marks;

  void read() {
    for (const auto& file : files) {
      auto found = config::reread_secret_file(file);
      if (!found) {
        error = found.error();
        return;
      }
      marks.push_back(found->mark);
      texts.emplace_back(std::move(found->text));
    }
  }
  bool failed() const { return error.code != Code::ok; }
  bool all_old() const {
    for (const auto& mark : marks) {
      if (!is_old(mark)) return false;
    }
    return true;
  }
};

/// Fills the pass on a thread of `io`.
Task<Status> CredentialFiles::run(std::shared_ptr<Pass> pass) {
  for (int turn = 0; *reading_ >= kMaxReading; ++turn) {
    if (turn == kMaxTurns) {
      co_return fail(Code::unavailable, "other secret files are being read for two seconds already; try again");
    }
    pass->ended.expires_after(milliseconds(10));
    co_await pass->ended.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  ++*reading_;
  pass->ended.expires_after(kMaxPass);
  asio::post(io_, [pass, core = core_, reading = reading_] {
    pass->read();
    asio::post(core, [pass, reading] {
      --*reading;
      pass->done = true;
      pass->ended.cancel();
    });
  });
  co_await pass->ended.async_wait(asio::as_tuple(asio::use_awaitable));
  if (pass->done) co_return Status{};
  co_return fail(Code::deadline, "the secret files cannot be read within " + std::to_string(kMaxPass.count() / 1'000) +
                                     " s; is their file system a network mount that hangs?");
}

Task<Result<std::vector<Secret>>> CredentialFiles::read(std::vector<std::filesystem::path> files) {
  if (files.empty()) co_return std::vector<Secret>();
  std::shared_ptr<Pass> before;
  for (auto waited = milliseconds(0); waited <= config::kMaxSettleTime; waited += config::kSettleTime) {
    auto pass = std::make_shared<Pass>(core_, files);
    DRIFTD_CO_CHECK(co_await run(pass));
    const bool again = before && before->failed() == pass->failed();
    if (pass->failed() && (again || pass->error.code != Code::unavailable)) co_return fail(pass->error);
    const bool same = again && before->marks == pass->marks && before->texts == pass->texts;
    if (!pass->failed() && (same || pass->all_old())) co_return std::move(pass->texts);
    before = std::move(pass);
    asio::steady_timer pause(core_, config::kSettleTime);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return fail(config::unsettled_error(files.front()));
}

}  // namespace driftd::secrets
