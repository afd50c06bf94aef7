// SPDX-License-Identifier: Apache-2.0
#include "app/digests_sink.hpp"

#include "proto/digests.hpp"

namespace driftd::app {
namespace {

/// Forwards everything except the values. It overrides every function of the port.
class DigestsSink final : public core::Sink {
 public:
  DigestsSink(std::unique_ptr<core::Sink> sink, const store::InstallationKey& key)
      : sink_(std::move(sink)),
        key_(key) {}
  core::RetryPolicy policy() const override { return sink_->policy(); }
  Task<Status> start() override { return sink_->start(); }
  Task<core::Attempt> send(core::StoredEvent event) override {
    const Key& key = key_.for_event(event.stamp.seq);
    auto bare = proto::digests_only(std::move(event), key);
    if (!bare) co_return core::Attempt{core::Attempt::Outcome::permanent, bare.error().message, 0};
    core::Attempt attempt = co_await sink_->send(std::move(*bare));
    co_return attempt;
  }
  Task<Status> flush() override { return sink_->flush(); }
  std::string_view unflushed_loss() const override { return sink_->unflushed_loss(); }
  void begin_again() override { sink_->begin_again(); }
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override {
    return sink_->check(notes);
  }
  bool must_check() const override { return sink_->must_check(); }
  void attach(std::function<void()> wake) override { sink_->attach(std::move(wake)); }
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) override {
    sink_->note(notes, settled_to);
  }
  Status use_secrets(std::vector<std::string> secrets) override { return sink_->use_secrets(std::move(secrets)); }
  Task<void> former_secrets_unused() override { return sink_->former_secrets_unused(); }
  Task<void> stop() override { return sink_->stop(); }
  std::string describe() const override { return sink_->describe(); }

 private:
  const std::unique_ptr<core::Sink> sink_;
  const store::InstallationKey key_;
};

}  // namespace

std::unique_ptr<core::Sink> digests_only(std::unique_ptr<core::Sink> sink, const store::InstallationKey& key) {
  return std::make_unique<DigestsSink>(std::move(sink), key);
}

}  // namespace driftd::app
