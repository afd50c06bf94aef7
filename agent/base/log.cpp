// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/escape_json.hpp"

namespace driftd::log {
namespace {

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const auto since_epoch = msg.time.time_since_epoch();
    const auto level = spdlog::level::to_string_view(msg.level);
    const nlohmann::json line = {
        {"time", render_time(std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count())},
        {"level", std::string(level.data(), level.size())},
        {"room", std::string(msg.logger_name.data(), msg.logger_name.size())},
        {"message", std::string(msg.payload.data(), msg.payload.size())}};
    const std::string text = escaped_json(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

/// Escapes each message, so that it stays one line without control characters, whoever wrote its text.
class TextFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const std::string shown = escaped({msg.payload.data(), msg.payload.size()});
    spdlog::details::log_msg line = msg;
    line.payload = shown;
    pattern_.format(line, out);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }

 private:
  spdlog::pattern_formatter pattern_{"%Y-%m-%dT%H:%M:%S.%eZ %-5l %n: %v", spdlog::pattern_time_type::utc};
};

struct State {
  std::mutex mutex;
  Settings settings;
  std::shared_ptr<spdlog::sinks::stderr_sink_mt> sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  std::map<std::string, std::unique_ptr<spdlog::logger>> loggers;
};

/// Messages that are logged before configure(), as CLI commands do, are escaped, too.
State* make_state() {
  auto* out = new State;
  out->sink->set_formatter(std::make_unique<TextFormatter>());
  return out;
}

State& state() {
  static State* instance = make_state();  // never destroyed, because threads may log while the process exits
  return *instance;
}

void apply(const Settings& settings, const std::string& name, spdlog::logger& logger) {
  const auto found = settings.rooms.find(name);
  logger.set_level(spdlog::level::from_str(found == settings.rooms.end() ? settings.level : found->second));
  logger.flush_on(spdlog::level::info);
}

}  // namespace

void configure(const Settings& settings) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.settings = settings;
  if (settings.format == "json") {
    s.sink->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    s.sink->set_formatter(std::make_unique<TextFormatter>());
  }
  for (auto& [name, logger] : s.loggers) apply(settings, name, *logger);
}

spdlog::logger& room(const std::string& name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto& slot = s.loggers[name];
  if (!slot) {
    slot = std::make_unique<spdlog::logger>(name, s.sink);
    apply(s.settings, name, *slot);
  }
  return *slot;
}

}  // namespace driftd::log
