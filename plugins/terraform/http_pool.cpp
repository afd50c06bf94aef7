// SPDX-License-Identifier: Apache-2.0
#include "terraform/http_pool.hpp"

#include <openssl/evp.h>
#include <algorithm>
#include <utility>

#include "common/settings_reader.hpp"

namespace driftd::terraform {
namespace {

constexpr std::size_t kMaxState = 600u << 20;

/// Ends a transfer that has delivered enough.
struct Enough {};

}  // namespace

HttpPool::HttpPool(const Settings& settings, http::Tls tls)
    : options_{std::move(tls), settings.connect, false, "driftd-terraform"},
      call_(settings.call) {}

http::Request HttpPool::request(const std::string& url, std::vector<std::string> headers) const {
  http::Request out;
  out.url = url;
  out.headers = std::move(headers);
  out.timeout = call_;
  return out;
}

http::Response HttpPool::send(sdk::Call& call, const http::Request& request) {
  std::unique_ptr<http::Client> client;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      client = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (client == nullptr) client = std::make_unique<http::Client>(options_);
  http::Response out = client->send(call, request);  // a client whose request threw is not reused
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(client));
  return out;
}

http::Response HttpPool::get(sdk::Call& call, const std::string& url, std::vector<std::string> headers) {
  return send(call, request(url, std::move(headers)));
}

http::Response HttpPool::get_into(sdk::Call& call, const std::string& url, std::vector<std::string> headers,
                                  Spool& to) {
  http::Request wanted = request(url, std::move(headers));
  wanted.timeout = std::chrono::milliseconds(0);  // a large state takes its time; the deadline of the call ends it
  wanted.idle = std::chrono::ceil<std::chrono::seconds>(call_);
  wanted.max_body = kMaxState;
  wanted.on_body = [&to](std::string_view piece) { to.write(piece); };
  return send(call, wanted);
}

http::Response HttpPool::probe(sdk::Call& call, const std::string& url, std::vector<std::string> headers,
                               ProbeDeadline end) {
  http::Request wanted = request(url, std::move(headers));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  wanted.timeout = std::max(left, std::chrono::milliseconds(1));
  std::string beginning;
  wanted.on_body = [&beginning](std::string_view piece) {
    beginning.append(piece.substr(0, kBeginning - beginning.size()));
    if (beginning.size() == kBeginning) throw Enough{};
  };
  http::Response out;
  try {
    out = send(call, wanted);
  } catch (const Enough&) {
    out.status = 200;
  }
  if (out.ok()) out.body = std::move(beginning);
  return out;
}

void refuse(const http::Response& response, const Refusal& refusal) {
  sdk::Failure failure = http::failure_of(response, refusal.what);
  if (response.status == 401)
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, refusal.what + ": HTTP status 401: " + refusal.login + " was refused");
  if (response.status == 403) throw sdk::Failure(DRIFTD_DENIED, refusal.what + ": HTTP status 403", {}, refusal.right);
  // A missing object does not prove that what it described was deleted.
  if (failure.code == DRIFTD_NOT_FOUND || failure.code == DRIFTD_CONFLICT) failure.code = DRIFTD_UNAVAILABLE;
  if (failure.code == DRIFTD_CURSOR_EXPIRED) failure.code = DRIFTD_UNAVAILABLE;
  throw failure;
}

std::string base_url(const std::string& setting, const std::string& url) {
  if (url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0) {
    common::refuse_setting("settings.backend." + setting, "a URL of http or https", "another form",
                           "begin it with https://");
  }
  return url.substr(0, url.find_last_not_of('/') + 1);
}

std::string basic_auth(const std::string& user, const std::string& password) {
  return "Authorization: Basic " + base64(user + ":" + password);
}

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::string from_base64(std::string_view text, const std::string& what) {
  std::string out(3 * (text.size() / 4) + 3, '\0');
  const int size = text.size() % 4 != 0 ? -1
                                        : EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                                          reinterpret_cast<const unsigned char*>(text.data()),
                                                          static_cast<int>(text.size()));
  if (size < 0) throw sdk::Failure(DRIFTD_CORRUPT, what + ": is no base64");
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

}  // namespace driftd::terraform
