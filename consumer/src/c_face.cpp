// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "driftd/consumer.h"
#include "driftd/consumer/pattern_runner.hpp"

namespace dc = driftd::consumer;

struct driftd_consumer {
  std::unique_ptr<dc::PatternRunner> runner;
};

struct driftd_slot_use {
  dc::PatternRunner* runner;
  std::string slot;
  std::shared_ptr<dc::Slot> connection;
};

namespace {

constexpr std::size_t kMaxError = 1'024;

std::string text(const char* value) { return value == nullptr ? "" : value; }

std::size_t write(const std::string& from, char* to, std::size_t size) {
  if (to != nullptr && size > 0) {
    const std::size_t length = std::min(from.size(), size - 1);
    std::memcpy(to, from.data(), length);
    to[length] = '\0';
  }
  return from.size();
}

/// A config as C reads it. It refers to what it was made from.
struct ConfigView {
  explicit ConfigView(const dc::SlotConfig& config) : host(config.host()) {
    for (const auto& [member, value] : config.credentials) {
      credentials.push_back({member.c_str(), value.reveal().c_str(), value.reveal().size()});
    }
    view = {config.backend.name.c_str(),
            config.backend.type.c_str(),
            config.backend.endpoint.c_str(),
            host.c_str(),
            config.port(),
            config.backend.config_json.c_str(),
            credentials.data(),
            credentials.size()};
  }
  ConfigView(const ConfigView&) = delete;
  ConfigView& operator=(const ConfigView&) = delete;
  std::string host;
  std::vector<driftd_credential> credentials;
  driftd_slot_config view{};
};

class CSlot final : public dc::Slot {
 public:
  CSlot(const driftd_slot_calls& calls, void* connection) : calls_(calls), connection_(connection) {}
  ~CSlot() override { calls_.release(connection_); }
  CSlot(const CSlot&) = delete;
  CSlot& operator=(const CSlot&) = delete;

  dc::Status update_credentials(const dc::SlotConfig& config) override {
    const ConfigView view(config);
    char error[kMaxError] = "";
    if (calls_.update_credentials(connection_, &view.view, error, sizeof error) == 0) return {};
    return dc::fail(dc::Code::unavailable, *error == '\0' ? "update_credentials failed and gave no reason" : error);
  }
  void disconnect() override { calls_.disconnect(connection_); }
  void* connection() const { return connection_; }

 private:
  const driftd_slot_calls calls_;
  void* const connection_;
};

class CFactory final : public dc::SlotFactory {
 public:
  CFactory(const driftd_slot_calls& calls, void* user) : calls_(calls), user_(user) {}
  dc::Result<std::shared_ptr<dc::Slot>> connect(const dc::SlotBinding& binding, const dc::SlotConfig& config) override {
    const ConfigView view(config);
    const driftd_slot_binding given{binding.slot.c_str(), binding.backend.c_str(), binding.slot_type.c_str(), nullptr,
                                    0};
    char error[kMaxError] = "";
    void* connection = calls_.connect(user_, &given, &view.view, error, sizeof error);
    if (connection != nullptr) return std::make_shared<CSlot>(calls_, connection);
    return dc::fail(dc::Code::unavailable, *error == '\0' ? "connect failed and gave no reason" : error);
  }

 private:
  const driftd_slot_calls calls_;
  void* const user_;
};

dc::RunnerSettings settings_of(const driftd_consumer_settings& from, void* user) {
  dc::RunnerSettings out;
  out.pattern = text(from.pattern);
  out.instance = text(from.instance);
  for (std::size_t i = 0; i < from.slot_count; ++i) {
    const driftd_slot_binding& each = from.slots[i];
    dc::SlotBinding binding{text(each.slot), text(each.backend), text(each.slot_type), {}};
    for (std::size_t k = 0; k < each.alternate_count; ++k) binding.alternates.push_back(text(each.alternates[k]));
    out.slots.push_back(std::move(binding));
  }
  for (std::size_t i = 0; i < from.nats_server_count; ++i) out.nats.servers.push_back(text(from.nats_servers[i]));
  if (from.nats_stream != nullptr) out.nats.stream = from.nats_stream;
  out.nats.credentials_file = text(from.nats_credentials_file);
  out.nats.tls_ca = text(from.nats_tls_ca);
  out.checkpoint = text(from.checkpoint);
  if (from.start_timeout_ms != 0) out.start_timeout = std::chrono::milliseconds(from.start_timeout_ms);
  if (from.log != nullptr) {
    out.log = [log = from.log, user](dc::LogLevel level, const std::string& line) {
      log(user, static_cast<int>(level), line.c_str());
    };
  }
  return out;
}

}  // namespace

driftd_consumer* driftd_consumer_create(const driftd_consumer_settings* settings, const driftd_slot_calls* calls,
                                        void* user, char* error, std::size_t error_size) {
  try {
    if (settings == nullptr || settings->size != sizeof(driftd_consumer_settings)) {
      write("settings: size must be sizeof(driftd_consumer_settings)", error, error_size);
      return nullptr;
    }
    if (calls == nullptr || calls->connect == nullptr || calls->update_credentials == nullptr ||
        calls->disconnect == nullptr || calls->release == nullptr) {
      write("calls: connect, update_credentials, disconnect and release are needed", error, error_size);
      return nullptr;
    }
    auto runner =
        dc::PatternRunner::create(settings_of(*settings, user), dc::file_source(text(settings->backend_config_path)),
                                  std::make_shared<CFactory>(*calls, user));
    if (runner) return new driftd_consumer{std::move(*runner)};
    write(runner.error().message, error, error_size);
  } catch (const std::exception& thrown) {
    write(thrown.what(), error, error_size);
  }
  return nullptr;
}

int driftd_consumer_start(driftd_consumer* consumer, char* error, std::size_t error_size) {
  try {
    const dc::Status done = consumer->runner->start();
    if (done) return 0;
    write(done.error().message, error, error_size);
  } catch (const std::exception& thrown) {
    write(thrown.what(), error, error_size);
  }
  return -1;
}

void driftd_consumer_destroy(driftd_consumer* consumer) { delete consumer; }

driftd_slot_use* driftd_consumer_use(driftd_consumer* consumer, const char* slot) {
  auto connection = consumer->runner->slot(text(slot));
  if (!connection) return nullptr;
  return new driftd_slot_use{consumer->runner.get(), text(slot), std::move(connection)};
}

void* driftd_slot_use_connection(const driftd_slot_use* use) {
  return static_cast<const CSlot&>(*use->connection).connection();
}

void driftd_slot_use_end(driftd_slot_use* use, int broken) {
  if (use == nullptr) return;
  if (broken != 0) use->runner->report_broken(use->slot, use->connection);
  delete use;
}

std::size_t driftd_consumer_metrics(const driftd_consumer* consumer, char* to, std::size_t size) {
  return write(consumer->runner->metrics(), to, size);
}
