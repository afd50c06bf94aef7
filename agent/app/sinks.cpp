// SPDX-License-Identifier: Apache-2.0
#include "app/sinks.hpp"

#include "secrets/plain_references.hpp"
#include "sinks/file/file_sink.hpp"
#include "sinks/kafka/kafka_sink.hpp"
#include "sinks/nats/nats_sink.hpp"
#include "sinks/notifications/notifications_sink.hpp"
#include "sinks/plugin/plugin_sink.hpp"
#include "sinks/webhook/webhook_sink.hpp"

namespace driftd::app {
namespace {

/// Opens the sink for each kind of settings.
struct Opener {
  const std::string& name;
  asio::any_io_executor core, io;
  const Clock& clock;
  sinks::ChatLinkMaker links;

  Result<std::unique_ptr<core::Sink>> operator()(const sinks::NatsSettings& settings) const {
    return sinks::open_nats(name, settings, core, io);
  }
  Result<std::unique_ptr<core::Sink>> operator()(const sinks::KafkaSettings& settings) const {
    return sinks::open_kafka(name, settings, core, io);
  }
  Result<std::unique_ptr<core::Sink>> operator()(const sinks::WebhookSettings& settings) const {
    return sinks::open_webhook(name, settings, {core, io, &clock, links});
  }
  Result<std::unique_ptr<core::Sink>> operator()(const sinks::NotificationsSettings& settings) const {
    return sinks::open_notifications(settings, {});
  }
  Result<std::unique_ptr<core::Sink>> operator()(const sinks::FileSettings& settings) const {
    return sinks::open_file(name, settings, io);
  }
  Result<std::unique_ptr<core::Sink>> operator()(const sinks::PluginSettings&) const {
    return fail(Code::internal, "sink '" + name + "' is one of a plugin");  // make_plugin_sink() makes it
  }
};

}  // namespace

Result<std::unique_ptr<core::Sink>> make_sink(const config::SinkSpec& spec, asio::any_io_executor core,
                                              asio::any_io_executor io, const Clock& clock,
                                              sinks::ChatLinkMaker links) {
  return std::visit(Opener{spec.name, std::move(core), std::move(io), clock, std::move(links)}, spec.settings);
}

bool is_plugin_sink(const config::SinkSpec& spec) {
  return std::holds_alternative<sinks::PluginSettings>(spec.settings);
}

Result<std::unique_ptr<core::Sink>> make_plugin_sink(const config::SinkSpec& spec, asio::any_io_executor core,
                                                     std::shared_ptr<core::SessionFactory> sessions,
                                                     const std::vector<core::SessionFactory::ScanResult>& found) {
  const auto& settings = std::get<sinks::PluginSettings>(spec.settings);
  const core::ProviderInfo* known = secrets::find_sink_plugin(found, settings.plugin);
  return sinks::open_plugin(spec.name, settings, std::move(sessions), known, std::move(core));
}

}  // namespace driftd::app
