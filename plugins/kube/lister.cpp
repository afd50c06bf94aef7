// SPDX-License-Identifier: Apache-2.0
#include "kube/lister.hpp"

#include <cstdlib>

#include "kube/json_access.hpp"
#include "kube/list_splitter.hpp"
#include "kube/outline.hpp"

namespace driftd::kube {
namespace {

constexpr std::size_t kMaxObject = 16u << 20;  // etcd takes 1.5 MiB; JSON and managedFields make more of it
constexpr int kMaxRestarts = 3;                // lists begun again because their token grew too old
constexpr int kStreamsSince = 32;              // minor version that offers WatchList

common::BoundedJson parse_object(std::string_view text, const std::string& what) {
  common::BoundedJson out = kube::parse_object(text);
  if (!out.value.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, what + ": no JSON object");
  return out;
}

/// Ends a stream whose rest is of no interest.
struct Enough {
  std::string resource_version;
};

}  // namespace

Lister::Page Lister::page(sdk::Call& call, const Resource& resource, const std::string& space, const std::string& query,
                          std::int64_t sent, const OnObject& on_object) {
  const std::string path = resource.path(space), what = "GET " + path;
  const auto item = [&](const std::string& text) {
    const auto parsed = parse_object(text, path);
    on_object({parsed.value, sent, parsed.why});
  };
  ItemSplitter splitter(item, kMaxObject);
  const http::Response response = send_request(call, api_, client_, path + query, [&](http::Request& request) {
    request.max_body = 0;
    request.on_body = [&](std::string_view piece) { splitter.feed(piece); };
  });
  if (!response.ok()) throw refusal(response, what, resource.kind, resource.right("list", space));
  const json rest = parse_object(splitter.rest(), path).value;
  Page out{text(rest, {"metadata", "resourceVersion"}), text(rest, {"metadata", "continue"})};
  if (out.resource_version.empty())
    throw sdk::Failure(DRIFTD_CORRUPT, what + ": a list without a resourceVersion", resource.kind);
  return out;
}

std::string Lister::list(sdk::Call& call, const Resource& resource, const std::string& space,
                         const OnObject& on_object) {
  if (api_.connection().streaming_lists && server_streams(call)) {
    if (const auto version = stream(call, resource, space, on_object)) return *version;
  }
  const std::string limit = "limit=" + std::to_string(api_.connection().page);
  std::string next;
  std::int64_t sent = call.now_ns();  // time of the first page; the others show the same moment
  for (int fresh = 0;;) {
    const std::string more = next.empty() ? "" : "&continue=" + http::escape(next);
    try {
      const Page done = page(call, resource, space, query_of(resource, limit + more), sent, on_object);
      next = done.next;
      if (next.empty()) return done.resource_version;
    } catch (const sdk::Failure& failure) {
      if (failure.code != DRIFTD_CURSOR_EXPIRED || next.empty() || ++fresh >= kMaxRestarts) throw;
      next.clear();  // the continue token is too old: from the start
      sent = call.now_ns();
      may_miss_deletions_ = true;
    }
  }
}

std::string Lister::current_version(sdk::Call& call, const Resource& resource, const std::string& space) {
  return page(call, resource, space, query_of(resource, "limit=1"), call.now_ns(), [](const Listed&) {})
      .resource_version;
}

bool Lister::server_streams(sdk::Call& call) {
  if (streams_ >= 0) return streams_ == 1;
  const http::Response response = send_request(call, api_, client_, "/version");
  const json version = json::parse(response.body, nullptr, false);
  const bool recent = text(version, {"major"}) == "1" && std::atoi(text(version, {"minor"}).c_str()) >= kStreamsSince;
  streams_ = response.ok() && recent ? 1 : 0;
  return streams_ == 1;
}

/// Returns nullopt if the server does not support streaming lists after all; pages are used then.
std::optional<std::string> Lister::stream(sdk::Call& call, const Resource& resource, const std::string& space,
                                          const OnObject& on_object) {
  const std::string path = resource.path(space), what = "GET " + path;
  const std::int64_t sent = call.now_ns();
  const std::string seconds = std::to_string(std::max<std::int64_t>(api_.connection().call.count() / 1000, 1));
  LineSplitter lines(
      [&](std::string_view line) {
        const auto [event, cut, why] = parse_object(line, path);
        const std::string type = text(event, {"type"});
        const json& object = find(event, {"object"});
        if (type == "ADDED" || type == "MODIFIED") return on_object({object, sent, why});
        if (type == "DELETED") may_miss_deletions_ = true;
        if (type == "ERROR")
          throw sdk::Failure(DRIFTD_UNAVAILABLE, what + ": " + text(object, {"message"}), resource.kind);
        const bool whole = text(object, {"metadata", "annotations", "k8s.io/initial-events-end"}) == "true";
        if (type == "BOOKMARK" && whole) throw Enough{text(object, {"metadata", "resourceVersion"})};
      },
      kMaxObject);
  const std::string query = query_of(resource,
                                     "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                                     "resourceVersionMatch=NotOlderThan&timeoutSeconds=" +
                                         seconds);
  try {
    const http::Response response = send_request(call, api_, client_, path + query, [&](http::Request& request) {
      request.max_body = 0;
      request.on_body = [&](std::string_view piece) { lines.feed(piece); };
    });
    if (response.status == 400 || response.status == 422) return streams_ = 0, std::nullopt;
    if (response.status == 403)
      return std::nullopt;  // `list` may still be granted; if not, its failure names the right
    if (!response.ok()) throw refusal(response, what, resource.kind, resource.right("watch", space));
    throw sdk::Failure(DRIFTD_UNAVAILABLE, what + ": the stream ended before the list was whole", resource.kind);
  } catch (const Enough& whole) {
    return whole.resource_version;
  } catch (const sdk::Failure& failure) {
    // A stream that is only too slow for the time of one request also ends streaming: each page has that time for
    // itself.
    if (failure.code == DRIFTD_DEADLINE || failure.code == DRIFTD_UNAVAILABLE) streams_ = 0;
    throw;
  }
}

}  // namespace driftd::kube
