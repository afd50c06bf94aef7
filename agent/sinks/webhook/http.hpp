// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sinks/webhook/address.hpp"
#include "sinks/webhook/tls_files.hpp"

namespace driftd::sinks {

struct HttpPost {
  std::string url, body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::milliseconds connect_timeout{5'000}, total_timeout{20'000};
};
/// The result of a POST. If `status` is 0 there was no answer: `failure` says why, and `about_endpoint` whether it
/// concerns the endpoint (connect, DNS, TLS, proxy, refused address) or perhaps this request (a time-out after it was
/// sent). A status counts once the head of the final answer is there. Up to 64 KiB of the body are read and dropped.
struct HttpAnswer {
  long status = 0;
  std::int64_t retry_after_ms = 0;
  bool about_endpoint = false;
  std::string failure;
  std::string warning;  ///< why the TLS files, as they are now, are not used; empty if they are
};

/// What all requests of a sender share.
struct HttpRoute {
  AddressGuard guard;  ///< of each connected address; not asked where there is a proxy
  TlsPaths tls;
  std::string proxy;  ///< URL; empty: none, whatever the environment says
};

/// Sends POSTs over reused connections on one thread of its own. It follows no redirects, asks for no compressed
/// answers, uses no cookies and only the scheme of the URL. post() [any thread]; `done` runs on the sender's thread.
/// The destructor ends requests under way (`done` gets a failure) and joins the thread.
class HttpSender {
 public:
  using Done = std::function<void(HttpAnswer)>;
  explicit HttpSender(HttpRoute route);
  ~HttpSender();
  HttpSender(const HttpSender&) = delete;
  HttpSender& operator=(const HttpSender&) = delete;
  void post(HttpPost request, Done done);

 private:
  struct Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace driftd::sinks
