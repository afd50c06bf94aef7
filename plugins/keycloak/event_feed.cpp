// SPDX-License-Identifier: Apache-2.0
#include "keycloak/event_feed.hpp"

#include <openssl/evp.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/bounded_json.hpp"
#include "common/checked_digest.hpp"
#include "keycloak/mapping.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;

constexpr int kForm = 2;                       // of the cursor
constexpr std::size_t kMaxCursor = 60u << 10;  // the host takes 64 KiB

std::string digest_of(const std::string& text) {
  auto context = common::begin_sha256();
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  common::require_digest(EVP_DigestUpdate(context.get(), text.data(), text.size()) == 1 &&
                         EVP_DigestFinal_ex(context.get(), bytes, &size) == 1);
  std::string out;
  constexpr char kDigits[] = "0123456789abcdef";
  for (unsigned int i = 0; i < 16; ++i) out += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return out;
}

/// A cursor begins with a digest of the rest: one that was damaged on its way could name another realm or another time
/// and still be read, and would then say "unchanged".
std::string with_digest(const std::string& text) { return digest_of(text) + " " + text; }

/// Returns the JSON of a cursor; a discarded value if its digest does not fit.
json checked_json(const std::string& cursor) {
  const auto space = cursor.find(' ');
  if (space == std::string::npos) return json(json::value_t::discarded);
  const std::string text = cursor.substr(space + 1);
  return digest_of(text) == cursor.substr(0, space) ? json::parse(text, nullptr, false)
                                                    : json(json::value_t::discarded);
}

}  // namespace

EventFeed::EventFeed(std::string scope, std::chrono::milliseconds overlap)
    : scope_(digest_of(scope)),
      overlap_(overlap) {}

void EventFeed::start(std::map<std::string, Start> realms, Steady::time_point began) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, start] : realms) {
    const auto before = realms_.find(name);
    if (before == realms_.end() || before->second.uuid != start.uuid || !before->second.feed || !start.feed) continue;
    const bool further = list_reason_.empty() && before->second.feed->last_ms() >= start.feed->last_ms();
    const std::int64_t reconciled = before->second.feed->last_reconcile_event_ms();
    if (further) {
      before->second.feed->settle(start.feed->polled_ms());  // the list has read it
      start.feed = before->second.feed;
    } else {
      start.feed->restore(start.feed->polled_ms(), reconciled);
    }
  }
  realms_ = std::move(realms);
  list_reason_.clear();
  listed_ = began;  // not a round: a refresh right after it asks for itself, unless a watch does
  ready_ = true;
  restored_ = false;
}

bool EventFeed::restore(const std::string& cursor) {
  const json from = checked_json(cursor);
  if (!from.is_object() || from.value("v", json()) != kForm || text_of(from, "scope") != scope_ ||
      !from.value("realms", json()).is_object())
    return false;
  std::map<std::string, Start> realms;
  for (const auto& [name, place] : from["realms"].items()) {
    Start& start = realms[name];
    start.uuid = text_of(place, "id");
    if (place.is_object() && place.value("blind", false)) continue;
    for (const char* member : {"lastEvent", "polled", "lastReconcileEventTime", "expiration"}) {
      if (!place.is_object() || !place.value(member, json()).is_number_integer()) return false;
    }
    start.feed.emplace(place["lastEvent"].get<std::int64_t>(), overlap_);
    start.feed->restore(place["polled"].get<std::int64_t>(), place["lastReconcileEventTime"].get<std::int64_t>());
    start.feed->set_expiration(std::chrono::milliseconds(place["expiration"].get<std::int64_t>()));
    const json seen = place.value("seen", json::object());
    for (const auto& [key, time] : seen.items()) {
      if (time.is_number_integer()) start.feed->restore_seen(key, time.get<std::int64_t>());
    }
  }
  const std::lock_guard lock(mutex_);
  if (ready_) return true;
  realms_ = std::move(realms);
  ready_ = restored_ = true;
  return true;
}

std::string EventFeed::cursor() const {
  const std::lock_guard lock(mutex_);
  if (!ready_ || !list_reason_.empty()) return {};
  std::string out = render(true);
  if (out.size() > kMaxCursor) out = render(false);  // what was seen last is then read again after a restart
  return out.size() > kMaxCursor ? std::string() : out;
}

std::string EventFeed::render(bool seen) const {
  json realms = json::object();
  for (const auto& [name, start] : realms_) {
    json& place = realms[name] = {{"id", start.uuid}};
    if (!start.feed) {
      place["blind"] = true;
      continue;
    }
    place["lastEvent"] = start.feed->last_ms();
    place["polled"] = start.feed->polled_ms();
    place["lastReconcileEventTime"] = start.feed->last_reconcile_event_ms();
    place["expiration"] = start.feed->expiration().count();
    if (seen) place["seen"] = start.feed->seen();
  }
  return with_digest(common::json_text({{"v", kForm}, {"scope", scope_}, {"realms", std::move(realms)}}));
}

std::string EventFeed::stamp() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, start] : realms_) {
    if (!start.feed) return {};  // of a realm that is blind it says nothing
    out += name + " " + std::to_string(start.feed->last_ms()) + "\n";
  }
  return out;
}

bool EventFeed::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_;
}

bool EventFeed::restored() const {
  const std::lock_guard lock(mutex_);
  return restored_;
}

std::vector<std::string> EventFeed::realms(bool blind) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, start] : realms_) {
    if (start.feed.has_value() != blind) out.push_back(name);
  }
  return out;
}

std::optional<RealmFeed> EventFeed::place(const std::string& realm) const {
  const std::lock_guard lock(mutex_);
  const auto found = realms_.find(realm);
  return found == realms_.end() ? std::nullopt : found->second.feed;
}

void EventFeed::commit(const std::string& realm, const std::vector<AdminEvent>& events, std::int64_t now_ms,
                       bool reconciled) {
  const std::lock_guard lock(mutex_);
  const auto found = realms_.find(realm);
  if (found != realms_.end() && found->second.feed) found->second.feed->commit(events, now_ms, reconciled);
}

void EventFeed::settle(const std::string& realm, std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  const auto found = realms_.find(realm);
  if (found != realms_.end() && found->second.feed) found->second.feed->settle(now_ms);
}

void EventFeed::require_list(const std::string& realm, const std::string& why) {
  const std::lock_guard lock(mutex_);
  list_reason_ = "realm " + realm + ": " + why;
}

std::string EventFeed::list_reason() const {
  const std::lock_guard lock(mutex_);
  return list_reason_;
}

EventFeed::Steady::duration EventFeed::list_age(Steady::time_point now) const {
  const std::lock_guard lock(mutex_);
  return now - listed_;
}

void EventFeed::note_round(Steady::time_point now) {
  const std::lock_guard lock(mutex_);
  round_ = now;
}

bool EventFeed::is_current(Steady::time_point now, Steady::duration max_age) const {
  const std::lock_guard lock(mutex_);
  return ready_ && !restored_ && list_reason_.empty() && now - round_ <= max_age;
}

}  // namespace driftd::keycloak
