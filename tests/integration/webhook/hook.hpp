// SPDX-License-Identifier: Apache-2.0
// Settings and questions that several tests of the webhook share.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sinks/webhook/sign.hpp"
#include "sinks/webhook/webhook_sink.hpp"
#include "support/certificates.hpp"
#include "support/http_receiver.hpp"
#include "support/relay_runner.hpp"
#include "support/sink_events.hpp"

namespace driftd::test {

inline const std::string kNewSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", kNewKey = "0123456789abcdef01234567";
inline const std::string kOldSecret = "the-old-key-that-is-rotated-out";

/// Returns settings for a receiver on loopback, with http or https.
inline sinks::WebhookSettings hook_settings(const HttpReceiver& receiver) {
  sinks::WebhookSettings out;
  out.url = receiver.url();
  out.secrets = {kNewSecret};
  out.allow_http_loopback = out.url.starts_with("http://");
  if (!out.allow_http_loopback) out.allow = {"127.0.0.1"};
  return out;
}

inline RelayRunner::MakeSink hook(sinks::WebhookSettings settings) {
  return [settings](auto core, auto io, const Clock& clock) {
    return sinks::open_webhook("ops", settings, core, io, clock);
  };
}

inline const std::string& header(const HttpReceived& request, const std::string& name) {
  static const std::string absent = "absent";
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? absent : found->second;
}

/// Returns true if the request carries a signature of its bytes by this key.
inline bool verifies(const HttpReceived& request, const std::string& key) {
  const std::string wanted =
      sinks::sign({key}, header(request, "webhook-id"), std::stoll(header(request, "webhook-timestamp")), request.body);
  return (" " + header(request, "webhook-signature") + " ").find(" " + wanted + " ") != std::string::npos;
}

/// Returns the ids of the events in a request, in their order.
inline std::vector<std::string> ids_in(const HttpReceived& request) {
  const auto body = nlohmann::json::parse(request.body);
  std::vector<std::string> out;
  for (const auto& event : body.is_array() ? body : nlohmann::json::array({body})) out.push_back(event.at("id"));
  return out;
}

/// Returns how often each event was answered with a 2xx.
inline std::map<std::string, int> accepted(const HttpReceiver& receiver) {
  std::map<std::string, int> out;
  for (const auto& request : receiver.received()) {
    if (request.status / 100 != 2) continue;
    for (const auto& id : ids_in(request)) ++out[id];
  }
  return out;
}

/// The largest resident size that this process ever had.
inline long peak_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Returns a stored event of the topic `name`, the n-th of all.
inline core::StoredEvent stored_event_of(const std::string& name, std::int64_t n) {
  core::BackendEvent event = sample_event(n);
  event.resource = core::ResourceId{"topic", name};
  const std::string id = "abcdefghij0123456789-" + std::to_string(3'000'000'000'000'000 + n);
  return proto::to_stored_event(event, {id, n, static_cast<std::uint64_t>(n), 1'763'700'000'000'000'000});
}

}  // namespace driftd::test
