// SPDX-License-Identifier: Apache-2.0
// What the tests of the consumer library share: events as driftd publishes them, sent by the real sink to a real
// nats-server; the RFC's file of backends; an application that works under load.
#pragma once

#include <gtest/gtest.h>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "driftd/consumer/pattern_runner.hpp"
#include "integration/nats/bus.hpp"

namespace driftd::test {

namespace dc = driftd::consumer;

/// Event number `n` of a backend, about the backend itself.
inline core::StoredEvent event_of(const std::string& backend, std::int64_t n, const std::string& what,
                                  core::ChangeType type, std::vector<core::Change> changes = {}) {
  core::BackendEvent event;
  event.backend_uid = "uid-of-" + backend;
  event.backend_name = backend;
  event.backend_type = "redis";
  event.provider = "redis";
  event.source = "redis";
  event.type = type;
  event.what = what;
  event.old_state = core::BackendSnapshot{backend, "redis", "old:1", "{}", {}, {}};
  event.new_state = event.old_state;
  event.changes = std::move(changes);
  event.agent = "a";
  event.cluster = "default";
  for (const auto& change : event.changes) {
    if (change.cls == core::ChangeClass::health && change.new_value) {
      event.new_state->metadata["health"] = nlohmann::json::parse(*change.new_value);
    }
  }
  const std::string id = "consumer0123456789ab-" + backend + std::to_string(1'000'000 + n);
  return proto::to_stored_event(event, {id, n, static_cast<std::uint64_t>(n), 1'763'700'000'000'000'000, 1});
}

inline core::StoredEvent rotated(const std::string& backend, std::int64_t n) {
  return event_of(backend, n, "credentials.rotated", core::ChangeType::credential_rotated);
}
inline core::StoredEvent health(const std::string& backend, std::int64_t n, const std::string& state) {
  return event_of(backend, n, "health.changed", core::ChangeType::health_changed,
                  {{"health", core::ChangeClass::health, "\"?\"", "\"" + state + "\"", false}});
}
/// As a Sentinel's new primary is reported.
inline core::StoredEvent moved(const std::string& backend, std::int64_t n, const std::string& to) {
  return event_of(backend, n, "endpoint.changed", core::ChangeType::endpoint_changed,
                  {{"primary", core::ChangeClass::endpoint, "\"old:1\"", "\"" + to + "\"", false}});
}

/// Log lines of a runner, for failures and for waiting.
class Lines {
 public:
  std::function<void(dc::LogLevel, const std::string&)> log() {
    return [this](dc::LogLevel, const std::string& line) {
      const std::lock_guard lock(mutex_);
      text_ += line + "\n";
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool contain(const std::string& part) const { return text().find(part) != std::string::npos; }
  std::int64_t count(const std::string& part) const {
    std::int64_t out = 0;
    const std::string all = text();
    for (std::size_t at = 0; (at = all.find(part, at)) != all.npos; ++at) ++out;
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Threads that run one operation after the other, each about every `each`, and count.
class Load {
 public:
  Load(int threads, std::chrono::milliseconds each, std::function<bool()> operation) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, each, operation] {
        std::unique_lock lock(mutex_);
        while (!done_) {
          lock.unlock();
          const bool good = operation();
          (good ? good_ : failed_)++;
          lock.lock();
          ended_.wait_for(lock, each, [this] { return done_; });
        }
      });
    }
  }
  ~Load() { end(); }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      ended_.notify_all();
    }
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  int good() const { return good_; }
  int failed() const { return failed_; }
  bool goes_on(int count = 50) {
    const int before = good_;
    return eventually([&] { return good_ >= before + count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::atomic<int> good_{0}, failed_{0};
  std::vector<std::thread> threads_;
};

inline dc::RunnerSettings runner_settings(const NatsServer& server, std::vector<dc::SlotBinding> slots, Lines& lines) {
  dc::RunnerSettings settings;
  settings.pattern = "order-consumer";
  settings.slots = std::move(slots);
  settings.nats.servers = {server.url()};
  settings.log = lines.log();
  return settings;
}

inline bool subscribed(const dc::PatternRunner& runner) {
  return eventually([&] {
    const auto status = runner.status();
    return !status.subscriptions.empty() && std::all_of(status.subscriptions.begin(), status.subscriptions.end(),
                                                        [](const auto& each) { return each.connected; });
  });
}

/// The value of a metric with these labels, from the text. Empty if there is none.
inline std::string metric(const std::string& text, const std::string& series) {
  const std::size_t at = text.find("\n" + series + " ");
  if (at == text.npos) return "";
  const std::size_t from = at + series.size() + 2;
  return text.substr(from, text.find('\n', from) - from);
}

}  // namespace driftd::test
