// SPDX-License-Identifier: Apache-2.0
// The calls of the sink table: from a frame's payload to the plugin's function and back.
#include <fmt/format.h>
#include <algorithm>

#include "worker/abi_input.hpp"
#include "worker/provider_host.hpp"
#include "worker/sink_input.hpp"

namespace driftd::worker {

driftd_status ProviderHost::open_sink(driftd_call handle, driftd_instance* made) {
  const driftd_sink_open_args args{sizeof args, 0, str(loaded_.open.backend), str(loaded_.open.settings_json)};
  return loaded_.library->sink->open(handle, &args, made);
}

void ProviderHost::take_part(ipc::Frame frame) {
  if (parts_.size() + frame.payload.size() <= ipc::kMaxDelivery) parts_ += frame.payload;
}

ipc::Frame ProviderHost::assembled(ipc::Frame last) {
  std::string whole = std::exchange(parts_, {});
  whole += last.payload;
  last.payload = std::move(whole);
  return last;
}

driftd_status ProviderHost::do_deliver(ActiveCall& call, const std::string& payload, driftd_call handle, std::string&) {
  if (!loaded_.library->sink) return DRIFTD_UNSUPPORTED;
  const auto asked = ipc::decode<ipc::DeliverCall>(payload);
  if (!asked || asked->events.empty()) return DRIFTD_INVALID;
  call.expect_settlements(asked->events.size());
  const BorrowedBatch borrowed(asked->events);
  const driftd_batch batch = borrowed.view();
  const driftd_status status = loaded_.library->sink->deliver(instance_, handle, &batch);
  const auto& settled = call.settled();
  const auto left = std::count(settled.begin(), settled.end(), false);
  if (status == DRIFTD_OK && left > 0)
    loaded_.misuse(fmt::format("deliver: answered OK without a verdict about {} of {} events", left, settled.size()));
  return status;
}

driftd_status ProviderHost::do_flush(ActiveCall&, const std::string&, driftd_call handle, std::string&) {
  return loaded_.library->sink ? loaded_.library->sink->flush(instance_, handle) : DRIFTD_UNSUPPORTED;
}

}  // namespace driftd::worker
