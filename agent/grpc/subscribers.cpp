// SPDX-License-Identifier: Apache-2.0
#include "grpc/subscribers.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "core/audit.hpp"
#include "grpc/filter.hpp"

namespace driftd::rpc {
namespace {

constexpr std::string_view kPrefix = "grpc/";
constexpr std::size_t kMaxSubscriptions = 1'000;
constexpr std::size_t kMaxCallbacks = 100;  // each is a sink with a window of its own

bool calls_back(const core::Subscription& one) { return !one.callback_endpoint.empty(); }

/// Returns the error for a change that is stored, but whose next step failed with `why`.
Error half_done(const char* what, const Error& why) {
  return {why.code, std::string(what) + ": " + why.message + "; the same call again does the rest"};
}

/// Returns the endings of the subjects of events of this type. `config.updated` is that of two types: the sink leaves
/// out the one that was not asked for.
std::vector<std::string> endings_of(core::ChangeType type) {
  switch (type) {
    case core::ChangeType::created:
      return {"created"};
    case core::ChangeType::updated:
      return {"updated", "config.updated"};
    case core::ChangeType::deleted:
      return {"deleted"};
    case core::ChangeType::credential_rotated:
      return {"credentials.rotated"};
    case core::ChangeType::health_changed:
      return {"health.changed"};
    case core::ChangeType::endpoint_changed:
      return {"endpoint.changed"};
    case core::ChangeType::config_drift_detected:
      return {"config.updated"};
    case core::ChangeType::unspecified:
      break;
  }
  return {};
}

}  // namespace

core::Route route_of(const core::Subscription& one) {
  core::Route out;
  out.backend = one.backend_names;
  for (const auto type : one.event_types) {
    for (auto& ending : endings_of(type)) out.change.push_back(std::move(ending));
  }
  out.to = {sink_name(one.subscriber)};
  return out;
}

std::string sink_name(const std::string& subscriber) { return std::string(kPrefix) + subscriber; }

Subscribers::Subscribers(asio::any_io_executor core, core::Subscriptions& store, SinkHost& sinks, MakeSink make,
                         std::function<Status(const std::string&)> check_endpoint)
    : store_(store),
      sinks_(sinks),
      make_(std::move(make)),
      check_endpoint_(std::move(check_endpoint)),
      changing_(std::move(core)) {}

Task<Status> Subscribers::load() {
  const AsyncMutex::Guard held = co_await changing_.lock();
  DRIFTD_CO_TRY(const auto rows, co_await store_.subscriptions());
  for (const auto& one : rows) {
    stored_[one.subscriber] = one;
    if (!calls_back(one)) continue;
    if (const Status allowed = check_endpoint_(one.callback_endpoint); !allowed) {
      log::room("sinks").error("grpc: subscriber {} gets nothing: {}", one.subscriber, allowed.error().message);
      blocked_[one.subscriber] = allowed.error().message;
      continue;
    }
    auto sink = make_(one);
    if (!sink) co_return fail(sink.error());
    sinks_.add(sink_name(one.subscriber), std::move(*sink));
  }
  DRIFTD_CO_TRY(const auto names, co_await sinks_.stored());
  for (const auto& name : names) {
    if (!name.starts_with(kPrefix)) continue;
    const auto found = stored_.find(name.substr(kPrefix.size()));
    if (found != stored_.end() && calls_back(found->second)) continue;
    log::room("sinks").info("grpc: {} is removed, as its subscription is", name);
    DRIFTD_CO_CHECK(co_await sinks_.remove(name));
  }
  route();
  co_return Status{};
}

Status Subscribers::check(const core::Subscription& one) const {
  const std::string why = one.subscriber.empty() ? "it is empty" : core::invalid_name_reason(one.subscriber);
  if (!why.empty()) {
    return fail(Code::invalid, "subscriber_id cannot be '" + core::shortened(one.subscriber, 64) + "': " + why +
                                   "; expected 1 to 128 letters, digits, - _ .");
  }
  std::vector<int> types;
  for (const auto type : one.event_types) types.push_back(static_cast<int>(type));
  DRIFTD_CHECK(check_names("backend_names", one.backend_names));
  DRIFTD_CHECK(check_types(types));
  if (!calls_back(one)) return {};
  return check_endpoint_(one.callback_endpoint);
}

bool Subscribers::runs(const core::Subscription& one) const {
  const auto views = sinks_.views();
  return std::any_of(views.begin(), views.end(), [name = sink_name(one.subscriber)](const core::SinkView& view) {
    return view.name == name && !view.type.empty();
  });
}

Status Subscribers::check_room(const core::Subscription& one) const {
  std::size_t callbacks = 0, others = 0;
  for (const auto& [id, other] : stored_) {
    if (id == one.subscriber) continue;
    ++others;
    if (calls_back(other)) ++callbacks;
  }
  if (others < kMaxSubscriptions && (!calls_back(one) || callbacks < kMaxCallbacks)) return {};
  return fail(Code::budget, "there are " + std::to_string(others) + " subscriptions, " + std::to_string(callbacks) +
                                " with a callback_endpoint; the maximum is " + std::to_string(kMaxSubscriptions) +
                                " and " + std::to_string(kMaxCallbacks) + "; delete those that nobody uses");
}

Task<Result<SubscriberState>> Subscribers::create(core::Subscription subscription, core::AuditEntry line) {
  DRIFTD_CO_CHECK(check(subscription));
  const AsyncMutex::Guard held = co_await changing_.lock();
  const auto known = stored_.find(subscription.subscriber);
  if (known != stored_.end() && known->second != subscription) {
    co_return fail(Code::conflict, "subscriber '" + subscription.subscriber +
                                       "' has another subscription; use UpdateSubscription to change it");
  }
  auto state = co_await store(std::move(subscription), std::move(line));
  co_return state;
}

Task<Result<SubscriberState>> Subscribers::update(core::Subscription subscription, core::AuditEntry line) {
  DRIFTD_CO_CHECK(check(subscription));
  const AsyncMutex::Guard held = co_await changing_.lock();
  if (!stored_.contains(subscription.subscriber)) {
    co_return fail(Code::not_found,
                   "there is no subscription of '" + subscription.subscriber + "'; create it with CreateSubscription");
  }
  auto state = co_await store(std::move(subscription), std::move(line));
  co_return state;
}

/// Writes the row and brings its sink to it. The same again finishes what an error interrupted.
Task<Result<SubscriberState>> Subscribers::store(core::Subscription next, core::AuditEntry line) {
  const std::string id = next.subscriber, name = sink_name(id);
  const auto known = stored_.find(id);
  const bool same = known != stored_.end() && known->second == next;
  const bool moved = known == stored_.end() || known->second.callback_endpoint != next.callback_endpoint ||
                     known->second.event_types != next.event_types;  // its sink knows both
  const bool running = runs(next);
  if (same && running == calls_back(next)) co_return get(id);
  DRIFTD_CO_CHECK(check_room(next));
  std::unique_ptr<core::Sink> sink;
  if (calls_back(next) && (moved || !running)) {
    DRIFTD_CO_TRY(sink, make_(next));
  }
  if (!same) DRIFTD_CO_CHECK(co_await store_.put_subscription(next, std::move(line)));
  stored_[id] = next;
  blocked_.erase(id);
  if (!calls_back(next)) {
    route();  // first: nothing may be routed to a sink that is closed
    Status removed;
    if (running) removed = co_await sinks_.remove(name);
    if (!removed)
      co_return fail(half_done("the subscription is stored, but its former callback goes on", removed.error()));
    co_return get(id);
  }
  Status started;
  if (sink && running) started = co_await sinks_.stop(name);  // the next one continues with its cursor
  if (sink && started) started = co_await sinks_.start(name, std::move(sink));
  if (!started) co_return fail(half_done("the subscription is stored, but its callback does not run", started.error()));
  route();
  co_return get(id);
}

Task<Result<bool>> Subscribers::remove(std::string subscriber, core::AuditEntry line) {
  const AsyncMutex::Guard held = co_await changing_.lock();
  const auto known = stored_.find(subscriber);
  const bool left = known == stored_.end() && runs({subscriber, {}, {}, {}});  // a removal failed half-way
  if (known == stored_.end() && !left) co_return false;
  const bool had_sink = left || calls_back(known->second);
  DRIFTD_CO_CHECK(co_await store_.delete_subscription(subscriber, std::move(line)));
  stored_.erase(subscriber);
  blocked_.erase(subscriber);
  route();
  Status removed;
  if (had_sink) removed = co_await sinks_.remove(sink_name(subscriber));
  if (!removed) co_return fail(half_done("the subscription is deleted, but its callback goes on", removed.error()));
  co_return true;
}

void Subscribers::route() const {
  std::vector<core::Route> routes;
  for (const auto& [id, one] : stored_) {
    if (calls_back(one) && !blocked_.contains(id)) routes.push_back(route_of(one));
  }
  sinks_.route(std::move(routes));
}

void Subscribers::stream_closed(const std::string& subscriber) {
  const auto found = streams_.find(subscriber);
  if (found != streams_.end() && --found->second == 0) streams_.erase(found);
}

SubscriberState Subscribers::state_of(const core::Subscription& one, const std::vector<core::SinkView>& views) const {
  SubscriberState out;
  out.subscription = one;
  const auto open = streams_.find(one.subscriber);
  out.streams = open == streams_.end() ? 0 : open->second;
  out.status = out.streams > 0 ? "Connected" : "Disconnected";
  if (!calls_back(one)) return out;
  out.sink = sink_name(one.subscriber);
  const auto view = std::find_if(views.begin(), views.end(), [&](const auto& sink) { return sink.name == out.sink; });
  const auto blocked = blocked_.find(one.subscriber);
  if (blocked != blocked_.end()) out.detail = blocked->second;
  if (blocked != blocked_.end() || view == views.end()) return out;
  out.detail = view->state;
  out.delivered = view->delivered;
  out.waiting = view->waiting;
  out.dead = view->dead;
  if (view->state.starts_with("connected")) out.status = "Connected";
  if (view->state.starts_with("circuit open") || view->retrying > 0) out.status = "Retrying";
  return out;
}

Result<SubscriberState> Subscribers::get(const std::string& subscriber) const {
  const auto found = stored_.find(subscriber);
  if (found != stored_.end()) return state_of(found->second, sinks_.views());
  return fail(Code::not_found, "there is no subscription of '" + core::shortened(subscriber, 64) + "'");
}

std::vector<SubscriberState> Subscribers::list() const {
  std::map<std::string, core::Subscription> all = stored_;
  for (const auto& [id, count] : streams_) all.try_emplace(id, core::Subscription{id, {}, {}, {}});
  const auto views = sinks_.views();
  std::vector<SubscriberState> out;
  for (const auto& [id, one] : all) out.push_back(state_of(one, views));
  return out;
}

}  // namespace driftd::rpc
