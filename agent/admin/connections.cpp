// SPDX-License-Identifier: Apache-2.0
#include "admin/connections.hpp"

#include <string>
#include <utility>

#include "admin/server.hpp"

namespace driftd::admin {

std::uint64_t Connections::add(Connection one) {
  const std::uint64_t id = next_++;
  open_.emplace(id, std::move(one));
  return id;
}

std::size_t Connections::refused() const {
  return count([](const Connection& c) { return c.refused; });
}

std::optional<Error> Connections::overload_error(const Connection& one) {
  const auto served = [&](const Connection& other) { return !other.refused && other.unix_socket == one.unix_socket; };
  const std::size_t all = count(served);
  if (!one.unix_socket) {
    if (all < settings_.max_port || close_oldest_idle()) return std::nullopt;
    return Error{Code::unavailable, "too many connections to the agent's port at once; try again"};
  }
  const std::size_t limit =
      one.owner ? settings_.max_unix : settings_.max_unix - std::min(settings_.max_unix, settings_.reserved);
  const std::size_t others = one.owner ? all : count([&](const Connection& c) { return served(c) && !c.owner; });
  if (others >= limit) return Error{Code::unavailable, "too many connections to the API; try again"};
  const std::size_t own = count([&](const Connection& c) { return served(c) && c.uid == one.uid; });
  if (one.owner || own < settings_.max_per_user) return std::nullopt;
  return Error{Code::unavailable,
               "this user has " + std::to_string(own) + " connections to the API, which is the maximum for one"};
}

bool Connections::close_oldest_idle() {
  const auto idle = std::find_if(open_.begin(), open_.end(), [](const auto& entry) {
    return !entry.second.unix_socket && !entry.second.refused && !entry.second.asking;
  });
  if (idle == open_.end()) return false;
  idle->second.refused = true;  // it no longer counts as served while its coroutine ends
  idle->second.close();
  return true;
}

void Connections::close_all() const {
  const auto open = open_;  // a copy, as closing one may end it
  for (const auto& [id, connection] : open) connection.close();
}

}  // namespace driftd::admin
