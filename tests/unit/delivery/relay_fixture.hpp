// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "fakes.hpp"

namespace driftd::delivery::test {

inline Attempt fail_event(const core::StoredEvent&) { return {Outcome::retry_event, "HTTP 500 from ops", 0}; }
inline Attempt fail_sink(const core::StoredEvent&) { return {Outcome::retry_sink, "connection refused", 0}; }

/// A relay over a store in memory, with sinks that answer as their scripts say and a clock that the test moves.
class RelayTest : public ::testing::Test {
 protected:
  void start(std::map<std::string, Script*> sinks) {
    RelaySettings settings;
    settings.agent = "a";
    settings.seed = 7;
    std::vector<std::string> names;
    for (const auto& [name, script] : sinks) names.push_back(name);
    settings.routes = [names](const core::AgentEvent&) { return names; };
    settings.appended = [this] { ++appended_; };
    relay_ = std::make_unique<Relay>(io_.get_executor(), outbox_, clock_, settings);
    for (const auto& [name, script] : sinks) {
      relay_->add_sink(name, "fake", std::make_unique<FakeSink>(io_.get_executor(), *script));
    }
    started_ = wait(relay_->start());
    settle();
  }
  template <class T>
  T wait(Task<T> task) {
    std::optional<T> out;
    asio::co_spawn(io_, std::move(task), [&out](std::exception_ptr, T value) { out = std::move(value); });
    settle();
    return std::move(*out);
  }
  void settle() {
    io_.restart();
    while (io_.poll() != 0) io_.restart();
  }
  void advance(std::chrono::nanoseconds by) {
    clock_.advance(by);
    relay_->wake();
    settle();
  }
  void kill() {  // nothing is drained or saved
    settle();
    relay_.reset();
  }
  core::SinkView view(const std::string& name) {
    for (auto& view : relay_->views()) {
      if (view.name == name) return view;
    }
    throw std::runtime_error("no sink " + name);
  }

  asio::io_context io_;
  FakeClock clock_;
  FakeOutbox outbox_;
  Status started_;
  std::unique_ptr<Relay> relay_;
  Script a_, b_;
  int appended_ = 0;  ///< RelaySettings::appended was called so often
};

}  // namespace driftd::delivery::test
