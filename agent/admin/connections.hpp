// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/result.hpp"

namespace driftd::admin {

struct ServerSettings;

/// An open connection, with what the admission rules need.
struct Connection {
  std::function<void()> close;  ///< may be called at any time, also after it has ended
  bool unix_socket = false;     ///< false: it is on the port
  std::int64_t uid = -1;        ///< of the caller on the Unix socket; -1 on the port
  bool owner = false;           ///< root or the agent's own user
  bool refused = false;         ///< it only gets a reason
  bool asking = false;          ///< a complete request of it is being answered
};

/// The open connections of the server, in order of arrival, and the rules that decide whether one more is served: how
/// many the socket and the port have, how many one user has, and which are reserved for the owner. Core thread.
class Connections {
 public:
  /// The settings must outlive it.
  explicit Connections(const ServerSettings& settings) : settings_(settings) {}

  /// Returns why this connection cannot be served in addition to the open ones, `unavailable`. Empty if it can; for
  /// that it may close an idle connection of the port.
  std::optional<Error> overload_error(const Connection& one);
  /// Adds a connection, served or refused, and returns its id.
  std::uint64_t add(Connection one);
  /// Notes whether a complete request of this connection is being answered. It must be open.
  void set_asking(std::uint64_t id, bool asking) { open_.at(id).asking = asking; }
  void erase(std::uint64_t id) { open_.erase(id); }  ///< called when its coroutine ends
  /// Closes all of them. Each stays until its coroutine has ended and erased it.
  void close_all() const;
  bool empty() const { return open_.empty(); }
  /// Returns how many only get a reason.
  std::size_t refused() const;

 private:
  template <class Matches>
  std::size_t count(Matches matches) const {
    return static_cast<std::size_t>(
        std::count_if(open_.begin(), open_.end(), [&](const auto& entry) { return matches(entry.second); }));
  }
  /// Closes the oldest connection of the port that has not sent a request, so that idle ones cannot keep a probe out.
  /// Returns false if there is none.
  bool close_oldest_idle();

  const ServerSettings& settings_;            ///< the maxima
  std::map<std::uint64_t, Connection> open_;  ///< by id, so the oldest is first
  std::uint64_t next_ = 0;                    ///< id of the next connection
};

}  // namespace driftd::admin
