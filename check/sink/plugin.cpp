// SPDX-License-Identifier: Apache-2.0
#include "check/sink/plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "check/documents.hpp"
#include "check/negotiate.hpp"
#include "ipc/limits.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

// These stand in for slots that the sink does not have.
driftd_status no_describe(driftd_push_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_schema(driftd_str, driftd_push_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_open(driftd_call, const driftd_sink_open_args*, driftd_instance*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_deliver(driftd_instance, driftd_call, const driftd_batch*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_probe(driftd_instance, driftd_call, driftd_health_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_flush(driftd_instance, driftd_call) { return DRIFTD_UNSUPPORTED; }
void no_wake(driftd_instance) {}
void no_close(driftd_instance) {}
const void* no_query(driftd_str, std::uint32_t) { return nullptr; }

driftd_sink_table full_size(const void* given) {
  driftd_sink_table out{sizeof out, 0,         &no_describe, &no_schema, &no_open, &no_deliver,
                        &no_probe,  &no_flush, &no_wake,     &no_close,  &no_query};
  if (null_slot(given) >= 0) throw CheckNotMade("the sink's table has a NULL slot; see negotiation.slots");
  std::memcpy(&out, given, std::min<std::size_t>(size_of(given), sizeof out));
  out.size = sizeof out;
  return out;
}

/// Returns an optional whole number of describe.
std::uint64_t number(const Json& of, const char* member, std::uint64_t least, std::uint64_t maximum,
                     std::uint64_t absent) {
  const auto found = of.find(member);
  if (found == of.end()) return absent;
  if (!found->is_number_unsigned() || *found < least || *found > maximum) {
    throw RuleBroken(fmt::format("describe: `{}` must be a whole number from {} to {}, found {}", member, least,
                                 maximum, found->dump()));
  }
  return found->get<std::uint64_t>();
}

}  // namespace

SinkInfo parse_sink_info(const std::string& describe) {
  for (const char* member : {"id", "version"}) expect_text_member(describe, member);
  const Json json = Json::parse(describe);
  if (json.contains("title")) expect_text_member(describe, "title");
  SinkInfo out;
  out.id = json["id"];
  out.version = json["version"];
  out.title = json.value("title", out.id);
  out.bodies = expect_names(describe, "bodies");
  const Json batch = json.value("batch", Json::object());
  if (!batch.is_object()) throw RuleBroken("describe: `batch` must be an object with `events` and `bytes`");
  out.batch_events = static_cast<std::uint32_t>(number(batch, "events", 1, ipc::kMaxBatchEvents, 1));
  out.batch_bytes = number(batch, "bytes", ipc::kLeastBatchBytes, ipc::kMaxBatchBytes, ipc::kMaxBatchBytes);
  expect_concurrency(describe);
  out.concurrency = json.value("concurrency", 1);
  const Json retry = json.value("retry", Json("forever"));
  if (retry != "forever" && retry != "schedule")
    throw RuleBroken(fmt::format("describe: `retry` must be \"forever\" or \"schedule\", found {}", retry.dump()));
  if (json.contains("flush") && !json["flush"].is_boolean())
    throw RuleBroken("describe: `flush` must be true or false");
  out.has_flush = json.value("flush", false);
  expect_objects(describe, "extensions", {"id", "revision"});
  return out;
}

const SinkPlugin& SinkPlugin::load(const Subject& subject) {
  static const SinkPlugin* loaded = [&] {
    auto* plugin = new SinkPlugin;
    plugin->table = full_size(accepted(subject).table);
    return plugin;
  }();
  return *loaded;
}

CallTrace SinkPlugin::describe() const {
  return ask_document("describe", [this](driftd_push_fn push, void* user) { return table.describe(push, user); });
}

CallTrace SinkPlugin::schema(const std::string& what) const {
  return ask_document("schema(\"" + what + "\")", [this, what](driftd_push_fn push, void* user) {
    return table.schema({what.data(), what.size()}, push, user);
  });
}

const SinkInfo& SinkPlugin::info() const {
  static const SinkInfo kInfo = [this] {
    try {
      return parse_sink_info(expect_document("describe", describe(), describe()));
    } catch (const RuleBroken& e) {
      throw CheckNotMade(fmt::format("{}; see schema.describe", e.what()));
    }
  }();
  return kInfo;
}

const std::string& SinkPlugin::settings_schema() const {
  static const std::string kSchema = [this] {
    try {
      return expect_document("schema(\"settings\")", schema("settings"), schema("settings"));
    } catch (const RuleBroken& e) {
      throw CheckNotMade(fmt::format("{}; see schema.settings", e.what()));
    }
  }();
  return kSchema;
}

}  // namespace driftd::check
