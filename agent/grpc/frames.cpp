// SPDX-License-Identifier: Apache-2.0
#include "grpc/frames.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "driftd/v1/service.pb.h"

namespace driftd::rpc {
namespace {

namespace io = google::protobuf::io;

/// Appends a field of length-delimited bytes.
void append(std::string& out, int field, const std::string& bytes) {
  constexpr std::uint32_t kLengthDelimited = 2;
  io::StringOutputStream stream(&out);
  io::CodedOutputStream coded(&stream);
  coded.WriteTag(static_cast<std::uint32_t>(field) << 3 | kLengthDelimited);
  coded.WriteVarint32(static_cast<std::uint32_t>(bytes.size()));
  coded.WriteString(bytes);
}

}  // namespace

std::string event_frame(const core::StoredEvent& event, const ResumeToken& token) {
  std::string out;
  out.reserve(event.payload.size() + 64);
  append(out,
         event.agent_event ? v1::SubscribeResponse::kAgentEventFieldNumber : v1::SubscribeResponse::kEventFieldNumber,
         event.payload);
  append(out, v1::SubscribeResponse::kResumeTokenFieldNumber, render(token));
  return out;
}

std::string position_frame(const ResumeToken& token, std::int64_t newest) {
  v1::SubscribeResponse out;
  out.mutable_position()->set_incarnation(token.incarnation);
  out.mutable_position()->set_after_seq(token.seq);
  out.mutable_position()->set_newest_seq(newest);
  out.set_resume_token(render(token));
  return out.SerializeAsString();
}

std::string heartbeat_frame(const ResumeToken& token, std::int64_t newest) {
  v1::SubscribeResponse out;
  out.mutable_heartbeat()->set_after_seq(token.seq);
  out.mutable_heartbeat()->set_newest_seq(newest);
  out.set_resume_token(render(token));
  return out.SerializeAsString();
}

std::string gap_frame(const Gap& gap, const ResumeToken& token) {
  v1::SubscribeResponse out;
  out.mutable_gap()->set_reason(static_cast<v1::StreamGap::Reason>(gap.reason));
  out.mutable_gap()->set_from_seq(gap.from);
  out.mutable_gap()->set_to_seq(gap.to);
  out.mutable_gap()->set_detail(gap.detail);
  out.set_resume_token(render(token));
  return out.SerializeAsString();
}

}  // namespace driftd::rpc
