// SPDX-License-Identifier: Apache-2.0
#include "kafka/alter_wire.hpp"

#include "kafka/wire.hpp"

namespace driftd::kafka {
namespace {

constexpr std::int16_t kIncrementalAlterConfigs = 44;
constexpr int kSet = 0, kDelete = 1;  // AlterConfigOp.OpType
constexpr const char* kDoing = "IncrementalAlterConfigs";

}  // namespace

std::string alter_request(std::int32_t correlation, const AlterRequest& request) {
  std::string body;
  put_number(body, 1, 4);
  put_number(body, static_cast<std::uint32_t>(request.type), 1);
  put_text(body, request.name);
  put_number(body, static_cast<std::uint32_t>(request.alterations.size()), 4);
  for (const auto& one : request.alterations) {
    put_text(body, one.name);
    put_number(body, one.value ? kSet : kDelete, 1);
    if (one.value)
      put_text(body, *one.value);
    else
      put_number(body, 0xffff, 2);  // null
  }
  put_number(body, request.validate_only ? 1 : 0, 1);
  return framed_request(kIncrementalAlterConfigs, 0, correlation, body);
}

AlterAnswer parse_alter(std::string_view bytes, std::int32_t correlation, const AlterRequest& request) {
  WireAnswer answer(kDoing, bytes, correlation);
  answer.number(4);  // throttle_time_ms: of the next request
  if (answer.number(4) != 1) corrupt_answer(kDoing, "it is not about one resource");
  AlterAnswer out{answer.number(2), answer.text(2)};
  const bool same_type = answer.number(1) == static_cast<std::int32_t>(request.type);
  if (!same_type || answer.text(2) != request.name) corrupt_answer(kDoing, "it is about another resource");
  return out;
}

}  // namespace driftd::kafka
