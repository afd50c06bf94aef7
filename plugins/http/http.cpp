// SPDX-License-Identifier: Apache-2.0
#include "http/http.hpp"

#include <curl/curl.h>
#include <memory>

#include "common/shown_url.hpp"

namespace driftd::http {

driftd_status code_of(int status) {
  switch (status) {
    case 401:
      return DRIFTD_UNAUTHENTICATED;
    case 403:
      return DRIFTD_DENIED;
    case 404:
      return DRIFTD_NOT_FOUND;
    case 409:
    case 412:
      return DRIFTD_CONFLICT;
    case 410:
      return DRIFTD_CURSOR_EXPIRED;
    case 429:
      return DRIFTD_THROTTLED;
    case 408:
      return DRIFTD_UNAVAILABLE;
    case 501:
    case 505:
      return DRIFTD_UNSUPPORTED;
    default:
      break;
  }
  if (status >= 200 && status < 300) return DRIFTD_OK;
  if (status >= 500 && status < 600) return DRIFTD_UNAVAILABLE;
  return status >= 400 && status < 500 ? DRIFTD_INVALID : DRIFTD_CORRUPT;
}

sdk::Failure failure_of(const Response& response, const std::string& what, const std::string& detail) {
  const std::string text =
      what + ": HTTP status " + std::to_string(response.status) + (detail.empty() ? "" : ": " + detail);
  const driftd_status code = code_of(response.status);
  return {code == DRIFTD_OK ? DRIFTD_CORRUPT : code, text, {}, {}, response.retry_after_ms};
}

std::string name_of(const Request& request) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  const bool parsed = curl_url_set(url.get(), CURLUPART_URL, request.url.c_str(), 0) == CURLUE_OK;
  return request.method + " " + (parsed ? common::shown_url(request.url) : "(no URL)");
}

std::optional<std::int64_t> parse_date(const std::string& text) {
  const auto seconds = text.empty() ? -1 : static_cast<std::int64_t>(::curl_getdate(text.c_str(), nullptr));
  return seconds < 0 ? std::nullopt : std::optional(seconds);
}

std::string escape(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += raw;
    } else {
      out += {'%', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return out;
}

void wipe(std::string& text) {
  volatile char* at = text.data();
  for (std::size_t i = 0; i < text.size(); ++i) at[i] = 0;
  text.clear();
}

}  // namespace driftd::http
