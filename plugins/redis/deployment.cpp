// SPDX-License-Identifier: Apache-2.0
#include "redis/deployment.hpp"

#include <exception>

namespace driftd::redis {
namespace {

bool ends_the_call(const sdk::Failure& failure) {
  return failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
}

Info fields_of(const Reply& reply) {
  Info out;
  for (std::size_t i = 0; i + 1 < reply.list.size(); i += 2) out[reply.list[i].text] = reply.list[i + 1].text;
  return out;
}

/// One request from 7.0 on; older servers take one section at a time.
Info ask_info(sdk::Call& call, Client& client) {
  std::vector<std::string> words{"INFO"};
  words.insert(words.end(), kInfoSections.begin(), kInfoSections.end());
  try {
    return parse_info(client.command(call, words, {}, "+info").text);
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_CORRUPT) throw;  // ERR syntax error
  }
  Info out;
  for (const char* section : kInfoSections)
    out.merge(parse_info(client.command(call, {"INFO", section}, {}, "+info").text));
  return out;
}

}  // namespace

std::unique_ptr<Client> Pool::take(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto found = idle_.find(address);
  return found == idle_.end() ? nullptr : std::move(found->second);
}

void Pool::put(std::unique_ptr<Client> client) {
  const std::lock_guard lock(mutex_);
  idle_[client->address()] = std::move(client);
}

Deployment::Deployment(sdk::Call& call, const Settings& settings, Pool* pool, std::chrono::milliseconds timeout)
    : call_(call),
      settings_(settings),
      pool_(pool),
      timeout_(timeout),
      failing_(std::uncaught_exceptions()) {
  if (settings.sentinel)
    follow();
  else
    connect_any();
}

Deployment::~Deployment() {
  if (pool_ == nullptr || std::uncaught_exceptions() > failing_) return;
  if (client_ != nullptr) pool_->put(std::move(client_));
  for (auto& one : sentinels_) pool_->put(std::move(one));
}

/// Returns a connection that answers. `info`, if given, gets its INFO; otherwise a PING checks it.
std::unique_ptr<Client> Deployment::open(const Address& address, const Login& login, Info* info) {
  const auto greet = [&](Client& client) {
    sent_ns_ = call_.now_ns();
    if (info != nullptr)
      *info = ask_info(call_, client);
    else
      client.command(call_, {"PING"}, {}, "+ping");
  };
  if (auto idle = pool_ == nullptr ? nullptr : pool_->take(address.text())) {
    try {
      greet(*idle);
      return idle;
    } catch (const sdk::Failure& failure) {  // it may have been closed meanwhile; a new connection shows it
      if (ends_the_call(failure) || failure.code == DRIFTD_DENIED) throw;
    }
  }
  auto fresh = Client::connect(call_, address, login, settings_, timeout_);
  if (info != nullptr) greet(*fresh);
  return fresh;
}

void Deployment::connect_any() {
  for (std::size_t i = 0;; ++i) {
    try {
      client_ = open(settings_.addresses[i], settings_.login, &info_);
      first_ = i == 0;
      if (!sentinel()) return sentinel_failures_.clear();
      query_sentinel(*client_, settings_.addresses[i]);
      return query_sentinel(i + 1);
    } catch (const sdk::Failure& failure) {
      if (ends_the_call(failure) || i + 1 == settings_.addresses.size()) throw;
      sentinel_failures_.push_back(failure);
    }
  }
}

void Deployment::query_sentinel(Client& client, const Address& address) {
  try {
    const Reply masters = client.command(call_, {"SENTINEL", "MASTERS"}, "sentinel_master", "+sentinel|masters");
    SentinelView view{address.text(), {}};
    for (const auto& one : masters.list) {
      Info fields = fields_of(one);
      const std::string name = get(fields, "name");
      view.masters[name] = std::move(fields);
    }
    views_.push_back(std::move(view));
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) throw;
    sentinel_failures_.push_back(failure);
  }
}

/// Queries the Sentinels from this address on and records failures.
void Deployment::query_sentinel(std::size_t from) {
  const Login& login = settings_.sentinel ? settings_.sentinel->login : settings_.login;
  for (std::size_t i = from; i < settings_.addresses.size(); ++i) {
    try {
      auto client = open(settings_.addresses[i], login, nullptr);
      query_sentinel(*client, settings_.addresses[i]);
      sentinels_.push_back(std::move(client));
    } catch (const sdk::Failure& failure) {
      if (ends_the_call(failure)) throw;
      sentinel_failures_.push_back(failure);
    }
  }
}

void Deployment::follow() {
  query_sentinel(0);
  if (views_.empty()) throw sdk::Failure(sentinel_failures_.back());
  const std::string& master = settings_.sentinel->master;
  const std::string primary = primary_named(views_, master);
  if (primary.empty()) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE, views_.front().sentinel + ": no Sentinel knows a primary '" + master +
                                               "'; check settings.sentinel.master");
  }
  client_ = open(parse_address(primary, "primary of " + master), settings_.login, &info_);
  if (role_of(info_) == "primary") return;
  throw sdk::Failure(DRIFTD_UNAVAILABLE, "the Sentinels name " + primary + " as the primary of " + master +
                                             ", which is a " + role_of(info_) + " itself: a failover is under way");
}

}  // namespace driftd::redis
