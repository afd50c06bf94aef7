// SPDX-License-Identifier: Apache-2.0
#include "cli/client.hpp"

#include <curl/curl.h>
#include <unistd.h>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/exit_codes.hpp"
#include "cli/fields.hpp"
#include "core/value/parse_limits.hpp"
#include "curl/library.hpp"

namespace driftd::cli {
namespace {

struct CloseCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t append(char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

/// Under sudo the calling user's name goes into the audit log as a claim, because the environment proves nothing.
std::unique_ptr<curl_slist, CloseCurl> make_headers() {
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  const char* user = std::getenv("SUDO_USER");
  if (user != nullptr && *user != '\0' && std::string_view(user).find_first_of("\r\n") == std::string_view::npos) {
    headers = curl_slist_append(headers, ("Driftd-Sudo-User: " + std::string(user)).c_str());
  }
  return std::unique_ptr<curl_slist, CloseCurl>(headers);
}

/// Explains why connecting to `socket` failed. curl's own message would name a TCP port.
std::string explain_unreachable(const std::string& socket) {
  const std::string refused = "no agent answers on " + socket + ": ";
  if (::access(socket.c_str(), W_OK) == 0)
    return refused + "the socket exists, but no process listens on it; is driftd running?";
  if (errno == EACCES) {
    return "the agent's socket " + socket +
           " may not be opened by this user; run as root, or as a member of a group that admin.socket_group, "
           "read_group or decide_group names";
  }
  return refused + std::strerror(errno) + "; is driftd running, and is --socket right?";
}

/// More than an agent ever sends: 16 MiB of rows, or one row with both sides of its largest body.
constexpr core::ParseLimits kAnswerLimits{.bytes = 256u << 20, .nodes = 16'000'000};

Outcome<core::Value> parse_reply(const Outcome<Reply>& reply) {
  if (!reply) return tl::unexpected(reply.error());
  const auto value = core::parse(reply->body, kAnswerLimits);
  if (!value) {
    return tl::unexpected(Failure{kFinding, "the agent answered HTTP " + std::to_string(reply->status) + " with " +
                                                std::to_string(reply->body.size()) +
                                                " bytes that are not valid JSON: " + value.error().message});
  }
  if (reply->status < 400) return *value;
  const core::Value error = member(*value, "error");
  return tl::unexpected(
      Failure{reply->status == 400 ? kUsage : kFinding, text(error, "code") + ": " + text(error, "message")});
}

}  // namespace

std::string escape(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

Outcome<Reply> Client::raw(const std::string& target, const std::string* body, std::chrono::seconds timeout) const {
  if (unknown_) return tl::unexpected(*unknown_);
  if (const Status loaded = load_curl(); !loaded) return tl::unexpected(Failure{kUnreachable, loaded.error().message});
  const std::unique_ptr<CURL, CloseCurl> curl(curl_easy_init());
  const std::unique_ptr<curl_slist, CloseCurl> headers = make_headers();
  Reply reply;
  std::array<char, CURL_ERROR_SIZE> detail{};
  curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, socket_.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_URL, ("http://localhost" + target).c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 5L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, detail.data());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (body != nullptr) {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body->size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body->c_str());
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_COULDNT_CONNECT) return tl::unexpected(Failure{kUnreachable, explain_unreachable(socket_)});
  if (code != CURLE_OK) {
    const std::string why = detail[0] == '\0' ? curl_easy_strerror(code) : detail.data();
    long sent = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_REQUEST_SIZE, &sent);
    if (body != nullptr && sent > 0) {
      return tl::unexpected(
          Failure{kUnreachable, "the agent on " + socket_ + " was asked and did not answer (" + why +
                                    "): whether it did what it was asked is not known; look with `driftd audit` "
                                    "or `driftd drifts --all` before you repeat it"});
    }
    return tl::unexpected(Failure{
        kUnreachable, "no agent answers on " + socket_ + ": " + why + "; is driftd running, and is --socket right?"});
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  return reply;
}

Outcome<core::Value> Client::get(const std::string& path, const Query& query, std::chrono::seconds timeout) const {
  std::string target = path;
  for (const auto& [name, value] : query) {
    if (!value.empty()) target += (target.find('?') == std::string::npos ? "?" : "&") + name + "=" + escape(value);
  }
  return parse_reply(raw(target, nullptr, timeout));
}

Outcome<core::Value> Client::post(const std::string& path, const core::Value& body,
                                  std::chrono::seconds timeout) const {
  const std::string text = core::render(body);
  return parse_reply(raw(path, &text, timeout));
}

}  // namespace driftd::cli
