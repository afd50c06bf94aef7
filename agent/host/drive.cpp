// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <boost/asio/redirect_error.hpp>

#include "host/provider_host.hpp"
#include "host/session.hpp"

namespace driftd::host {
namespace {

constexpr std::size_t kPageRecords = 512;
constexpr std::size_t kPageBytes = 4u << 20;

/// A page being filled from frames; records of one frame may end up in two pages.
class PageBuilder {
 public:
  /// Whole pages that the frame completes are appended to `ready`.
  Status add(const Frame& frame, std::vector<core::RecordPage>& ready) {
    if (frame.type == FrameType::records) return add_records(frame, ready);
    if (frame.type == FrameType::mark) {
      DRIFTD_TRY(core::Mark mark, decode<core::Mark>(frame.payload));
      page_.marks.push_back(std::move(mark));
      cut(ready);
    } else if (frame.type == FrameType::diagnostic) {
      DRIFTD_TRY(core::Diagnostic diagnostic, decode<core::Diagnostic>(frame.payload));
      page_.diagnostics.push_back(std::move(diagnostic));
    }
    return {};
  }
  void cut(std::vector<core::RecordPage>& ready) {
    if (page_.records.empty() && page_.marks.empty() && page_.diagnostics.empty()) return;
    ready.push_back(std::exchange(page_, {}));
    bytes_ = 0;
  }

 private:
  Status add_records(const Frame& frame, std::vector<core::RecordPage>& ready) {
    DRIFTD_TRY(auto records, decode<std::vector<core::Observation>>(frame.payload));
    for (auto& record : records) {
      const std::size_t bytes = record.body.size() + record.status.size() + 512;
      if (page_.records.size() >= kPageRecords || bytes_ + bytes > kPageBytes) cut(ready);
      bytes_ += bytes;
      page_.records.push_back(std::move(record));
    }
    return {};
  }
  core::RecordPage page_;
  std::size_t bytes_ = 0;
};

/// Whoever stops waiting (error, exception, cancelled coroutine) leaves no call behind.
struct Guard {
  std::shared_ptr<Supervisor> supervisor;
  std::shared_ptr<Call> call;
  Guard(std::shared_ptr<Supervisor> s, std::shared_ptr<Call> c) : supervisor(std::move(s)), call(std::move(c)) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (!call->done) supervisor->abandon(*call);
  }
};

Task<Status> deliver(core::PageHandler on_page, std::vector<core::RecordPage> pages) {
  if (!on_page) co_return Status{};
  for (auto& page : pages) {
    const Status taken = co_await on_page(std::move(page));
    if (!taken) co_return taken;
  }
  co_return Status{};
}

Task<void> wait_for_more(std::shared_ptr<Call> call) {
  boost::system::error_code woken;  // each frame and the result cancel the timer
  co_await call->wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

/// The plugin's answer in the words of who asked: a call cut off by its deadline is `deadline`, not `cancelled`.
CallResult settled(const Call& call, CallResult result) {
  const bool late = call.cancelled && !call.stopped_early && result.code == Code::cancelled;
  if (late) result.code = Code::deadline;
  return result;
}

}  // namespace

Task<Result<CallResult>> drive(std::shared_ptr<Supervisor> supervisor, std::shared_ptr<Call> call,
                               core::PageHandler on_page) {
  const Guard guard(supervisor, call);
  PageBuilder builder;
  for (bool last = false; !last;) {
    std::vector<core::RecordPage> ready;
    while (auto frame = supervisor->pop(*call)) {
      DRIFTD_CO_CHECK(builder.add(*frame, ready));
      if (!ready.empty()) break;  // no further credit before the page is taken
    }
    last = call->done.has_value() && call->queue.empty() && ready.empty();
    if (last || call->type == FrameType::watch) builder.cut(ready);
    const bool idle = ready.empty() && !last;
    const Status taken = co_await deliver(on_page, std::move(ready));
    DRIFTD_CO_CHECK(taken);
    if (idle && !call->done && call->queue.empty()) co_await wait_for_more(call);
  }
  if (!*call->done) co_return fail(call->done->error());
  co_return settled(*call, **call->done);
}

}  // namespace driftd::host
