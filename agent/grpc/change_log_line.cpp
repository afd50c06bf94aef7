// SPDX-License-Identifier: Apache-2.0
#include "grpc/change_log_line.hpp"

#include <map>

#include "base/clock.hpp"
#include "base/escape_json.hpp"
#include "core/value/value.hpp"

namespace driftd::rpc {
namespace {

using changelog::v1::ChangeLogEntry;
using core::Value;

std::string_view name_of(changelog::v1::OperationType type) {
  switch (type) {
    case changelog::v1::OPERATION_TYPE_CREATE:
      return "create";
    case changelog::v1::OPERATION_TYPE_UPDATE:
      return "update";
    case changelog::v1::OPERATION_TYPE_DELETE:
      return "delete";
    default:
      return "unspecified";
  }
}

Value result_of(const ChangeLogEntry& entry) {
  if (!entry.has_error()) return Value::Object{{"status", Value("success")}};
  Value::Object error{{"code", Value(entry.error().code())}, {"message", Value(entry.error().message())}};
  return Value::Object{{"status", Value("error")}, {"error", Value(std::move(error))}};
}

Result<Value> parse_state(const char* which, const std::string& text) {
  auto out = core::parse(text);
  if (!out) return fail(Code::invalid, std::string(which) + " is not valid JSON: " + out.error().message);
  if (out->object() == nullptr) return fail(Code::invalid, std::string(which) + " is not a JSON object");
  return out;
}

}  // namespace

Result<std::string> render_line(const ChangeLogEntry& entry) {
  if (entry.operation_id().empty()) return fail(Code::invalid, "the entry has no operation_id");
  Value::Object out{{"operation_id", Value(entry.operation_id())},
                    {"sequence", Value(Value::Number{std::to_string(entry.sequence())})},
                    {"timestamp", Value(render_time(entry.timestamp_ns()))},
                    {"agent", Value(entry.agent())},
                    {"cluster", Value(entry.cluster())},
                    {"backend", Value(entry.backend())},
                    {"provider", Value(entry.provider())},
                    {"api_version", Value(entry.api_version())},
                    {"kind", Value(entry.kind())},
                    {"name", Value(entry.name())},
                    {"external_name", Value(entry.external_name())},
                    {"operation", Value(std::string(name_of(entry.operation())))},
                    {"result", result_of(entry)},
                    {"digest", Value(entry.digest())},
                    {"trace_id", Value(entry.trace_id())}};
  if (entry.omitted().empty()) {
    DRIFTD_TRY(out["desired"], parse_state("desired", entry.desired()));
    DRIFTD_TRY(out["observed"], parse_state("observed", entry.observed()));
  } else {
    out["omitted"] = Value(entry.omitted());
  }
  Value::Object details;
  for (const auto& [key, value] : entry.details()) details[key] = Value(value);
  out["details"] = Value(std::move(details));
  return escaped_json(core::render(Value(std::move(out))));
}

}  // namespace driftd::rpc
