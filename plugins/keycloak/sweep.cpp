// SPDX-License-Identifier: Apache-2.0
#include "keycloak/sweep.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "keycloak/names.hpp"
#include "keycloak/rights.hpp"
#include "keycloak/watcher.hpp"

namespace driftd::keycloak {
namespace {

constexpr std::size_t kMaxNamed = 20;  // realms that are named in one report

/// A failure of one kind in one realm; any other one ends the whole list.
bool is_partial(const sdk::Failure& failure) {
  return failure.code == DRIFTD_DENIED || failure.code == DRIFTD_UNSUPPORTED || failure.code == DRIFTD_BUDGET ||
         failure.code == DRIFTD_NOT_FOUND;
}

}  // namespace

void Sweep::begin(const EventFeed& feed) {
  for (const auto& name : reader_.realm_names()) begin_realm(name, feed);
}

void Sweep::begin_realm(const std::string& name, const EventFeed& feed) {
  std::optional<RealmView> view;
  try {
    view = reader_.realm(name);
  } catch (const sdk::Failure& failure) {
    if (!is_partial(failure)) throw;
    // Its name is known, so the kinds that other roles show are read all the same.
    realm_failures_.push_back({failure.code, "realm", {}, {}, failure.what(), failure.right, 0});
    unreadable_.push_back(name);
    if (settings_.use_events) blind_[name] = "whether its admin events are on is not known without view-realm";
    starts_[name] = {};
    return;
  }
  if (!view) {
    call_.log(DRIFTD_LOG_WARN, "realm " + name + ": Keycloak has no such realm; check settings.realms");
    return;
  }
  EventFeed::Start& start = starts_[name] = {view->uuid, {}};
  if (const auto place = feed.place(name)) reconciled_ms_[name] = place->last_reconcile_event_ms();
  if (settings_.use_events && !view->events_enabled) {
    blind_[name] = "its admin events are off; turn them on by `" + events_command(name) + "`";
  } else if (settings_.use_events) {
    try {
      start.feed = EventPoller(call_, api_, settings_).begin(*view);
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE) throw;
      blind_[name] = std::string("its admin events cannot be read: ") + failure.what();
    }
  }
  realms_.push_back(std::move(*view));
}

std::string Sweep::blind_text() const {
  std::string out;
  std::size_t named = 0;
  for (const auto& [realm, why] : blind_) {
    if (++named > kMaxNamed) return out + "; and " + std::to_string(blind_.size() - kMaxNamed) + " more realms";
    out += (out.empty() ? "blind: realm " : "; realm ") + realm + ": " + why;
  }
  return out;
}

bool Sweep::emit(const std::vector<std::string>& kinds) {
  for (const auto& kind : kinds) {
    if (!emit_kind(kind)) return false;
  }
  return true;
}

bool Sweep::emit_kind(const std::string& kind) {
  count_ = 0;
  kind_whole_ = true;
  if (kind == "realm") {
    if (!emit_realms()) return false;
  } else {
    for (const auto& [realm, start] : starts_) {
      try {
        if (!reader_.list(kind, realm, [this](const Found& each) { return emit_record(each.record); })) return false;
      } catch (const sdk::Failure& failure) {
        note(failure, kind);
      }
    }
  }
  tell_blind(kind);
  whole_ = whole_ && kind_whole_;
  return !kind_whole_ || call_.complete(kind, count_);
}

bool Sweep::emit_realms() {
  for (const auto& failure : realm_failures_) {
    call_.diag(failure);
    kind_whole_ = false;
  }
  for (const auto& realm : realms_) {
    RealmState state{!blind_.contains(realm.name) && settings_.use_events, reconciled_ms_[realm.name]};
    if (!emit_record(reader_.realm_record(realm, std::move(state)))) return false;
  }
  return true;
}

bool Sweep::emit_record(const sdk::Record& record) {
  if (!settings_.scope.wants(record.kind, record.id)) return true;
  digest_ = digest_ * 31 + std::hash<std::string>()(record.kind + "/" + record.id + record.body);
  ++count_;
  return call_.emit(record);
}

void Sweep::note(const sdk::Failure& failure, const std::string& kind) {
  if (!is_partial(failure)) throw sdk::Failure(failure);
  // A list that answers "not found" proves nothing about single resources.
  const bool gone = failure.code == DRIFTD_NOT_FOUND;
  call_.diag({gone ? DRIFTD_UNAVAILABLE : failure.code, kind, {}, {}, failure.what(), failure.right, 0});
  kind_whole_ = false;
}

void Sweep::tell_blind(const std::string& kind) {
  if (blind_.empty()) return;
  call_.diag({DRIFTD_UNSUPPORTED, kind, {}, {}, blind_text(), {}, 0});
}

}  // namespace driftd::keycloak
