// SPDX-License-Identifier: Apache-2.0
#include "keycloak/watcher.hpp"

#include <algorithm>
#include <utility>

#include "common/wait_until.hpp"
#include "keycloak/names.hpp"

namespace driftd::keycloak {
namespace {

using How = Touch::How;
using Steady = EventFeed::Steady;

/// Who did the last of the events that concern this touch.
std::map<std::string, std::string> writer_of(const Touch& touch, const std::vector<AdminEvent>& events) {
  std::map<std::string, std::string> out;
  for (const auto& event : events) {
    const auto touched = touches_of(event);
    if (std::find(touched.begin(), touched.end(), touch) == touched.end()) continue;
    out["user"] = event.user;
    out["client"] = event.client;
    out["changed_at_ms"] = std::to_string(event.time_ms);
  }
  return out;
}

}  // namespace

void Watcher::run() {
  bool announced = false;
  while (!call_.cancelled()) {
    const auto began = Steady::now();
    if (feed_.ready() && !feed_.restored() && feed_.list_reason().empty()) {
      if (!std::exchange(announced, true)) call_.bookmark(feed_.cursor());
      if (!round()) return;
    }
    if (common::wait_until(call_, began + settings_.poll_interval)) return;
  }
}

bool Watcher::round() {
  for (const auto& realm : feed_.realms(false)) {
    if (!follow(realm)) return false;
  }
  if (settings_.use_events) {
    for (const auto& realm : feed_.realms(true)) look_at_blind(realm);
  }
  feed_.note_round(Steady::now());
  return true;
}

bool Watcher::follow(const std::string& realm) {
  const auto place = feed_.place(realm);
  if (!place) return true;
  Poll poll;
  try {
    poll = EventPoller(call_, api_, settings_).poll(realm, *place);
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_NOT_FOUND) throw;
    ask_for_list(realm, failure.what());  // the list says what is missing, or confirms that the realm is gone
    return true;
  }
  if (!poll.lost.empty()) {
    ask_for_list(realm, poll.lost);
    return true;
  }
  if (poll.touches.empty()) {
    feed_.commit(realm, poll.events, poll.server_ms, false);
    return true;
  }
  return apply(realm, poll);
}

void Watcher::ask_for_list(const std::string& realm, const std::string& why) {
  feed_.require_list(realm, why);
  call_.bookmark("");  // refresh now
}

void Watcher::look_at_blind(const std::string& realm) {
  try {
    const auto view = Reader(call_, api_, settings_, index_).realm(realm);
    if (view && !view->events_enabled) return;
    if (view) EventPoller(call_, api_, settings_).begin(*view);  // that they are on does not say that we may read them
    ask_for_list(realm, view ? "its admin events can be read again" : "it is gone");
  } catch (const sdk::Failure& failure) {
    // It stays blind, which the list has said. The other realms are followed all the same.
    if (failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE) throw;
  }
}

bool Watcher::apply(const std::string& realm, const Poll& poll) {
  Reader reader(call_, api_, settings_, index_);
  for (const auto& touch : poll.touches) {
    if (!settings_.scope.wants_kind(touch.kind)) continue;
    writer_ = writer_of(touch, poll.fresh);
    if (!apply_touch(reader, realm, touch)) return false;
  }
  writer_.clear();
  const auto view = reader.realm(realm);
  if (!view || !view->events_enabled) {
    ask_for_list(realm, view ? "its admin events were turned off" : "it is gone");
    return true;
  }
  auto after = feed_.place(realm);
  if (!after) return true;
  after->commit(poll.events, poll.server_ms, true);
  if (settings_.scope.wants("realm", id_of({realm}))) {
    writer_ = writer_of({"realm", How::sweep}, poll.fresh);
    RealmState state{true, after->last_reconcile_event_ms()};
    if (!emit_record(reader.realm_record(*view, std::move(state)))) return false;
    writer_.clear();
  }
  feed_.settle(realm, poll.server_ms);
  feed_.commit(realm, poll.events, poll.server_ms, true);  // only now: whatever failed before is read again
  return call_.bookmark(feed_.cursor());
}

bool Watcher::apply_touch(Reader& reader, const std::string& realm, const Touch& touch) {
  if (touch.kind == "realm") return true;  // is read last, with what was learnt
  if (touch.how == How::sweep) return sweep(reader, realm, touch.kind);
  if (touch.kind == "client") return touch_client(reader, realm, touch.key);
  if (touch.kind == "role") return touch_role(reader, realm, touch);
  if (touch.kind == "identity_provider") {
    return emit(touch.kind, realm, touch.key, id_of({realm, touch.key}), reader.identity_provider(realm, touch.key));
  }
  if (touch.kind == "authentication_flow") {
    // Only flows of the top level are resources. A part of one, or a flow that is named by its UUID, is found in all.
    auto now =
        index_.holds(touch.kind, realm, id_of({realm, touch.key})) ? reader.flow(realm, touch.key) : std::nullopt;
    return now ? emit(touch.kind, realm, now->uuid, {}, std::move(now)) : sweep(reader, realm, touch.kind);
  }
  return emit(touch.kind, realm, touch.key, index_.find(touch.kind, realm, touch.key),
              reader.by_uuid(touch.kind, realm, touch.key));
}

bool Watcher::sweep(Reader& reader, const std::string& realm, const std::string& kind) {
  const Index::Ids before = index_.all(kind, realm);
  const bool whole = reader.list(kind, realm, [this](Found each) { return emit_record(std::move(each.record)); });
  if (!whole) return false;
  std::set<std::string> now;
  for (const auto& [uuid, id] : index_.all(kind, realm)) now.insert(id);
  for (const auto& [uuid, id] : before) {
    if (!now.contains(id) && !emit_gone(kind, id)) return false;
  }
  return true;
}

bool Watcher::touch_client(Reader& reader, const std::string& realm, const std::string& uuid) {
  const std::string old_id = index_.find("client", realm, uuid);
  auto now = reader.by_uuid("client", realm, uuid);
  const std::string id = now ? now->record.id : std::string();
  if (!emit("client", realm, uuid, old_id, std::move(now))) return false;
  if (id == old_id) return true;
  // Its roles come and go with it, and have its name in their ids. They leave no events of their own.
  if (!old_id.empty() && !drop_roles_of(realm, old_id)) return false;
  if (id.empty() || !settings_.scope.wants_kind("role")) return true;
  return reader.client_roles(realm, uuid, parts_of(id).back(), [&](Found each) {
    index_.put("role", realm, each.uuid, each.record.id);
    return emit_record(std::move(each.record));
  });
}

bool Watcher::drop_roles_of(const std::string& realm, const std::string& client_id) {
  for (const auto& [uuid, id] : index_.all("role", realm)) {
    if (!id.starts_with(client_id + "/")) continue;
    index_.erase("role", realm, uuid);
    if (!emit_gone("role", id)) return false;
  }
  return true;
}

bool Watcher::touch_role(Reader& reader, const std::string& realm, const Touch& touch) {
  if (touch.how == How::uuid)
    return emit("role", realm, touch.key, index_.find("role", realm, touch.key),
                reader.by_uuid("role", realm, touch.key));
  const auto key = parts_of(touch.key);
  if (key.size() == 1) {
    auto now = reader.role_by_name(realm, {}, {}, key.front());
    const std::string uuid = now ? now->uuid : index_.key_of("role", realm, id_of({realm, key.front()}));
    return emit("role", realm, uuid, id_of({realm, key.front()}), std::move(now));
  }
  if (key.size() != 2) return true;
  const std::string client_id = index_.find("client", realm, key[0]);
  if (client_id.empty()) return true;  // the client is touched, too, or is gone and its roles with it
  const std::string client = parts_of(client_id).back();
  auto now = reader.role_by_name(realm, key[0], client, key[1]);
  const std::string id = id_of({realm, client, key[1]});
  const std::string uuid = now ? now->uuid : index_.key_of("role", realm, id);
  return emit("role", realm, uuid, id, std::move(now));
}

bool Watcher::emit(const std::string& kind, const std::string& realm, const std::string& uuid,
                   const std::string& old_id, std::optional<Found> now) {
  const std::string before = now ? index_.find(kind, realm, uuid) : std::string();
  if (now)
    index_.put(kind, realm, uuid, now->record.id);
  else
    index_.erase(kind, realm, uuid);
  for (const auto& id : {old_id, before}) {
    if (!id.empty() && (!now || id != now->record.id) && !emit_gone(kind, id)) return false;
  }
  return !now || emit_record(std::move(now->record));
}

bool Watcher::emit_record(sdk::Record record) {
  if (!settings_.scope.wants(record.kind, record.id)) return true;
  record.metadata.insert(writer_.begin(), writer_.end());
  return call_.emit(record);
}

bool Watcher::emit_gone(const std::string& kind, const std::string& id) {
  if (!settings_.scope.wants(kind, id)) return true;
  sdk::Record gone;
  gone.kind = kind;
  gone.id = id;
  gone.tombstone = true;
  gone.metadata = writer_;
  return call_.emit(gone);
}

}  // namespace driftd::keycloak
