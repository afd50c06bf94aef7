// SPDX-License-Identifier: Apache-2.0
#include "ipc/sink_info.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ipc/limits.hpp"
#include "ipc/text.hpp"

namespace driftd::ipc {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxTitle = 128;
constexpr std::size_t kMaxBodies = 32;

tl::unexpected<Error> bad_member(const std::string& file, const std::string& member, const std::string& expected,
                                 const Json& found) {
  return fail(Code::invalid, fmt::format("{}: describe: `{}` must be {}, found {}", file, member, expected,
                                         one_line(found.dump(), 128)));
}

Result<std::int64_t> batch_bound(const Json& object, const char* member, std::int64_t least, std::int64_t most,
                                 std::int64_t absent, const std::string& file) {
  const auto found = object.find(member);
  if (found == object.end()) return absent;
  const bool sound = found->is_number_integer() && *found >= least && *found <= most;
  if (!sound) return bad_member(file, std::string("batch.") + member, fmt::format("{} to {}", least, most), *found);
  return found->get<std::int64_t>();
}

Result<std::string> chosen_body(const Json& describe, const std::string& file) {
  const auto found = describe.find("bodies");
  const Json bodies = found == describe.end() ? Json() : *found;
  if (!bodies.is_array() || bodies.empty() || bodies.size() > kMaxBodies)
    return bad_member(file, "bodies", "a list of 1 to 32 content types", bodies);
  for (const auto& body : bodies) {
    if (!body.is_string()) return bad_member(file, "bodies", "a list of texts", bodies);
    for (const char* known : {core::kCloudEventsJson, core::kProtobuf}) {
      if (body.get_ref<const std::string&>() == known) return std::string(known);
    }
  }
  return fail(Code::unsupported,
              fmt::format("{}: describe: none of its `bodies` {} can be produced; this agent knows {} and {}", file,
                          one_line(bodies.dump(), 256), core::kCloudEventsJson, core::kProtobuf));
}

Result<bool> retries_forever(const Json& describe, const std::string& file) {
  const auto found = describe.find("retry");
  if (found == describe.end()) return true;
  if (*found == "forever") return true;
  if (*found == "schedule") return false;
  return bad_member(file, "retry", "\"forever\" or \"schedule\"", *found);
}

Result<std::string> sink_title(const Json& describe, const std::string& file) {
  const auto found = describe.find("title");
  if (found == describe.end()) return std::string();
  const bool sound = found->is_string() && found->get_ref<const std::string&>().size() <= kMaxTitle;
  if (!sound) return bad_member(file, "title", "a text of at most 128 bytes", *found);
  return printable(found->get<std::string>(), kMaxTitle);
}

}  // namespace

Result<core::SinkPluginInfo> parse_sink_info(const std::string& text, const std::string& file) {
  const Json describe = Json::parse(text, nullptr, false);
  if (!describe.is_object()) return fail(Code::invalid, file + ": describe: expected a JSON object");
  core::SinkPluginInfo out;
  DRIFTD_TRY(out.title, sink_title(describe, file));
  DRIFTD_TRY(out.content_type, chosen_body(describe, file));
  DRIFTD_TRY(out.forever, retries_forever(describe, file));
  const auto batch = describe.find("batch");
  const Json bounds = batch == describe.end() ? Json::object() : *batch;
  if (!bounds.is_object()) return bad_member(file, "batch", "an object with `events` and `bytes`", bounds);
  DRIFTD_TRY(const auto events, batch_bound(bounds, "events", 1, kMaxBatchEvents, 1, file));
  DRIFTD_TRY(const auto bytes, batch_bound(bounds, "bytes", kLeastBatchBytes, kMaxBatchBytes, kMaxBatchBytes, file));
  out.max_events = static_cast<std::size_t>(events);
  out.max_bytes = static_cast<std::size_t>(bytes);
  const auto flush = describe.find("flush");
  if (flush != describe.end() && !flush->is_boolean()) return bad_member(file, "flush", "true or false", *flush);
  out.has_flush = flush != describe.end() && flush->get<bool>();
  return out;
}

}  // namespace driftd::ipc
