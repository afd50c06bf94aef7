// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sinks/common/chat/settings.hpp"

namespace driftd::sinks {

/// How an event is put into a request (docs/sinks.md).
enum class WebhookMode {
  structured,  ///< one event, its attributes and its data in one JSON object
  binary,      ///< one event, its attributes in `ce-` headers, its data as the body
  batch        ///< a JSON array of structured events
};

/// Bounds of one request of WebhookMode::batch. An event larger than `bytes` is sent alone.
struct WebhookBatch {
  std::size_t events = 64, bytes = 1 << 20;
  bool operator==(const WebhookBatch&) const = default;
};

/// Files in PEM; empty: none. They are read again when they change.
struct TlsPaths {
  std::string ca;         ///< the certificate authorities of the receiver; empty: the system's
  std::string cert, key;  ///< the certificate (with its chain) that the agent shows, and its key
  bool operator==(const TlsPaths&) const = default;
};

/// `type: webhook`. Secrets are clear text here and appear in no log or error.
struct WebhookSettings {
  std::string url;                   ///< https://…; http:// only to loopback and with `allow_http_loopback`
  std::vector<std::string> secrets;  ///< `whsec_<base64>` or raw bytes; two while a key is rotated, the new one first
  WebhookMode mode = WebhookMode::structured;
  WebhookBatch batch;
  ChatSettings chat;  ///< what is sent instead of events if it has a format; then `mode` is not used
  bool allow_http_loopback = false;
  std::vector<std::string> allow;              ///< CIDRs that may be connected although they are private: `10.1.0.0/16`
  std::map<std::string, std::string> headers;  ///< added to each request; values may be secret
  TlsPaths tls;
  std::string proxy;           ///< `http://[user:password@]host:port`, may be secret; empty: none
  bool proxy_trusted = false;  ///< the proxy may choose the address, which `allow` then does not restrict
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{20'000};
  int max_in_flight = 8;  ///< requests
  bool operator==(const WebhookSettings&) const = default;
};

}  // namespace driftd::sinks
