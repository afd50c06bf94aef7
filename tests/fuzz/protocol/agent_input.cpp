// SPDX-License-Identifier: Apache-2.0
#include "fuzz/protocol/agent_input.hpp"

#include "fuzz/protocol/worker_frames.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/provider_info.hpp"

namespace driftd::fuzz {
namespace {

using ipc::Frame;
using ipc::FrameType;

void feed_answer(const std::string& payload, const ipc::Scrubber& scrubber) {
  auto result = ipc::decode<ipc::CallResult>(payload);
  if (!result) return;
  host::clean(*result, scrubber);
  if (auto plugin = ipc::decode<ipc::LoadAnswer>(result->body)) {
    (void)ipc::declared_metrics(plugin->describe);
    (void)ipc::parse_info(*plugin);
  }
  if (auto report = ipc::decode<core::HealthReport>(result->body)) host::clean(*report, scrubber);
  (void)ipc::decode<ipc::RefreshAnswer>(result->body);
  (void)ipc::decode<std::vector<core::Demotion>>(result->body);
}

void feed_frame(const Frame& frame, host::PageBuilder& builder, const ipc::Scrubber& scrubber) {
  std::vector<core::RecordPage> ready;
  switch (frame.type) {
    case FrameType::records:
    case FrameType::mark:
    case FrameType::diagnostic:
      (void)builder.add(frame, ready);
      return;
    case FrameType::result:
      return feed_answer(frame.payload, scrubber);
    default:
      (void)ipc::decode<ipc::LogLine>(frame.payload);
      (void)ipc::decode<ipc::Gauge>(frame.payload);
      (void)ipc::decode<ipc::PermitRequest>(frame.payload);
  }
}

}  // namespace

void feed_agent(std::string_view input) {
  static const std::map<std::string, std::string> secrets{{"token", "token-value"}};
  static const ipc::Scrubber scrubber(secrets);
  static const auto info = ipc::parse_info(loaded()).value();
  if (input.size() < 2) return;
  host::PageBuilder builder(info, scrubber, {1000, 1u << 20, 100});
  if (input[0] % 2 != 0) {
    const auto type = static_cast<FrameType>(32 + static_cast<unsigned char>(input[1]) % 7);
    return feed_frame({type, 1, std::string(input.substr(2))}, builder, scrubber);
  }
  ipc::FrameReader reader;
  for (input.remove_prefix(1); !input.empty(); input.remove_prefix(std::min<std::size_t>(input.size(), 100))) {
    reader.feed(input.substr(0, 100));
    for (auto frame = reader.next(); frame && *frame; frame = reader.next()) feed_frame(**frame, builder, scrubber);
  }
}

}  // namespace driftd::fuzz
