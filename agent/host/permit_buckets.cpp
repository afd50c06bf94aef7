// SPDX-License-Identifier: Apache-2.0
#include "host/permit_buckets.hpp"

#include <fmt/format.h>

#include "ipc/limits.hpp"

namespace driftd::host {

Status PermitBuckets::grant(const std::shared_ptr<Call>& call, const ipc::Frame& frame,
                            const std::shared_ptr<WorkerChannel>& channel) {
  const auto request = ipc::decode<ipc::PermitRequest>(frame.payload);
  if (!request || call->asks_permit || request->bucket.size() > ipc::kMaxName)
    return fail(Code::invalid, "asked for a permit out of turn");
  const auto now = Steady::now();
  if (buckets_.size() >= ipc::kMaxRateLimiters)
    std::erase_if(buckets_, [now](const auto& one) { return one.second.full(now); });
  if (buckets_.size() >= ipc::kMaxRateLimiters)
    return fail(Code::invalid, fmt::format("used more than {} buckets of permits", ipc::kMaxRateLimiters));
  const auto granted_at = buckets_[request->bucket].reserve(request->tokens, now);
  auto timer = std::make_shared<asio::steady_timer>(call->limit.get_executor(), granted_at);
  auto* raw = timer.get();
  call->asks_permit = true;
  raw->async_wait([timer = std::move(timer), weak = std::weak_ptr(channel), call,
                   ticket = request->ticket](const boost::system::error_code&) {
    call->asks_permit = false;
    if (const auto open = weak.lock())
      open->send(ipc::FrameType::permitted, call->id, encode(ipc::PermitAnswer{ticket, Code::ok}));
  });
  return {};
}

}  // namespace driftd::host
