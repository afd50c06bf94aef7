// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sinks/webhook/address.hpp"

namespace driftd::sinks {

struct HttpPost {
  std::string url, body, ca_file;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::milliseconds connect_timeout{5'000}, total_timeout{20'000};
};
/// What came of it. `status` 0: no answer, then `failure` says why and `about_endpoint` whether it is the endpoint's
/// (connect, DNS, TLS, refused address) or perhaps this request's (time-out behind the connect). The body of the answer
/// is read to at most 64 KiB and dropped.
struct HttpAnswer {
  long status = 0;
  std::int64_t retry_after_ms = 0;
  bool about_endpoint = false;
  std::string failure;
};

/// Sends POSTs over reused connections on one thread of its own. No redirects, no proxy, no cookies, only the scheme of
/// the URL; each connected address passes the guard. post() [any thread]; `done` runs on the sender's thread. The
/// destructor gives up what is under way (`done` is called with a failure) and joins.
class HttpSender {
 public:
  using Done = std::function<void(HttpAnswer)>;
  explicit HttpSender(AddressGuard guard);
  ~HttpSender();
  HttpSender(const HttpSender&) = delete;
  HttpSender& operator=(const HttpSender&) = delete;
  void post(HttpPost request, Done done);

 private:
  struct Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace driftd::sinks
