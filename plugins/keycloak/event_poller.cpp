// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "http/http.hpp"
#include "keycloak/rights.hpp"
#include "keycloak/watcher.hpp"

namespace driftd::keycloak {
namespace {

constexpr std::size_t kEventPage = 500;
constexpr std::size_t kMaxEvents = 20'000;  // more since the last question: a full list is cheaper

}  // namespace

std::vector<AdminEvent> EventPoller::events_since(const std::string& realm, std::int64_t from_ms) {
  std::vector<AdminEvent> out;
  const std::string path = "/" + http::escape(realm) + "/admin-events";
  while (true) {
    const Answer answer = api_.get(call_, path + "?dateFrom=" + std::to_string(std::max<std::int64_t>(from_ms, 0)) +
                                              "&direction=asc&first=" + std::to_string(out.size()) +
                                              "&max=" + std::to_string(kEventPage) + "&" + event_filter());
    if (answer.status == 403) {
      throw sdk::Failure(DRIFTD_DENIED,
                         "GET " + settings_.url + "/admin/realms" + path +
                             ": HTTP status 403: the role view-events is "
                             "missing in realm " +
                             realm + "; grant it by `" + grant_command(settings_.login, realm, "view-events") + "`",
                         {}, "view-events");
    }
    if (!answer.ok()) {
      throw sdk::Failure(http::code_of(answer.status), "GET " + settings_.url + "/admin/realms" + path +
                                                           ": HTTP status " + std::to_string(answer.status));
    }
    auto page = parse_events(answer.body);
    const bool last = page.size() < kEventPage;
    std::move(page.begin(), page.end(), std::back_inserter(out));
    if (last || out.size() > kMaxEvents) return out;
  }
}

Poll EventPoller::poll(const std::string& realm, const RealmFeed& place) {
  Poll out;
  out.server_ms = api_.server_ms(call_);  // before the question: what happens after it is asked for next time
  out.events = events_since(realm, place.from_ms());
  out.fresh = place.fresh(out.events);
  out.touches = touches_of(out.fresh);
  for (const auto& touch : place.due(out.server_ms)) out.touches.insert(touch);
  if (place.expired(out.server_ms)) {
    out.lost = "admin events are kept for " + std::to_string(place.expiration().count() / 1000) +
               " s (adminEventsExpiration) and were last read " +
               std::to_string((out.server_ms - place.polled_ms()) / 1000) + " s ago, so some may have expired unread";
  } else if (const auto by = place.stepped_back(out.server_ms); by.count() > 0) {
    out.lost = "the clock of the server went back by " + std::to_string(by.count() / 1000) +
               " s, so events may lie before those that were read last";
  } else if (place.vanished(out.events, out.server_ms)) {
    out.lost = "admin events that were there before are gone, so somebody deleted events, perhaps unread ones";
  } else if (out.events.size() > kMaxEvents) {
    out.lost = "more than " + std::to_string(kMaxEvents) + " admin events came since they were read last";
  }
  return out;
}

RealmFeed EventPoller::begin(const RealmView& realm) {
  const std::int64_t now = api_.server_ms(call_);
  RealmFeed out(now, settings_.event_overlap);
  out.set_expiration(realm.expiration);
  out.commit(events_since(realm.name, out.from_ms()), now, false);
  return out;
}

}  // namespace driftd::keycloak
