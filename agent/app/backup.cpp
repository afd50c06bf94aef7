// SPDX-License-Identifier: Apache-2.0
// `driftd backup` and `driftd restore`: the store's copies, under the names that the configuration gives.
#include "store/backup.hpp"

#include "app/app.hpp"

namespace driftd::app {
namespace {

core::Value::Object content_json(const store::Content& content) {
  const auto number = [](std::int64_t value) { return core::Value(core::Value::Number{std::to_string(value)}); };
  return {{"backends", number(content.backends)},
          {"resources", number(content.resources)},
          {"open_drifts", number(content.open_drifts)},
          {"events", number(content.events)},
          {"newest_event", number(content.newest_event)},
          {"newest_at", content.newest_ns == 0 ? core::Value() : core::Value(render_time(content.newest_ns))}};
}

}  // namespace

Result<core::Value> back_up(const config::Config& config, const std::string& to, bool with_key) {
  const SystemClock clock;
  DRIFTD_TRY(const auto backup, store::back_up(config.agent.data_dir, to, with_key, clock.wall()));
  auto out = content_json(backup.content);
  out["file"] = core::Value(backup.file.string());
  out["key_file"] = core::Value(backup.key_file.string());
  return core::Value(std::move(out));
}

Result<core::Value> restore(const config::Config& config, const std::string& from, const std::string& key) {
  const SystemClock clock;
  DRIFTD_TRY(const auto restored, store::restore(config.agent.data_dir, from, key, clock.wall()));
  auto out = content_json(restored.content);
  out["file"] = core::Value((config.agent.data_dir / "store.db").string());
  out["kept"] = core::Value(restored.kept.string());
  return core::Value(std::move(out));
}

}  // namespace driftd::app
