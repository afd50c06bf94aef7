// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "driftd/sdk/call.hpp"

namespace driftd::http {

/// Local (`from`) and remote (`to`) address of a connection.
struct Endpoints {
  std::string to, from;  ///< addresses, not names
  int to_port = 0, from_port = 0;
  auto operator<=>(const Endpoints&) const = default;
};

/// Asks the owner of a client once about each new connection before a request uses it. Over HTTP/2 requests share
/// connections and libcurl may send several within one step, so a refusal holds for all requests of that step.
class ConnectionGuard {
 public:
  /// An empty function accepts every connection.
  explicit ConnectionGuard(std::function<void(sdk::Call&)> ask) : ask_(std::move(ask)) {}

  bool needed() const { return static_cast<bool>(ask_); }  ///< false: check() need not be called

  /// Call before each request; throws the refusal. `fresh` is true if this request made the connection. Checking only
  /// fresh ones is not enough: the request that made a connection may have ended before it came here.
  void check(sdk::Call& call, const Endpoints& endpoints, bool fresh) {
    if (!fresh && agreed_.contains(endpoints)) return;
    agreed_.erase(endpoints);
    if (refusal_) throw *refusal_;
    try {
      ask_(call);
    } catch (const sdk::Failure& failure) {
      const bool of_this_call = failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
      if (!of_this_call) refusal_ = failure;
      throw;
    } catch (const std::exception& thrown) {
      throw refusal_.emplace(DRIFTD_INTERNAL, thrown.what());
    } catch (...) {
      throw refusal_.emplace(DRIFTD_INTERNAL, "something that is no exception was thrown");
    }
    if (agreed_.size() >= kRemembered) agreed_.clear();  // asks again
    agreed_.insert(endpoints);
  }

  /// Ends the step and returns its refusal, if any.
  std::optional<sdk::Failure> take_refusal() { return std::exchange(refusal_, std::nullopt); }
  /// Forgets all approvals; call when every connection was closed.
  void forget() { agreed_.clear(); }

 private:
  static constexpr std::size_t kRemembered = 256;

  const std::function<void(sdk::Call&)> ask_;  ///< throws to refuse
  std::set<Endpoints> agreed_;                 ///< connections that were accepted; 256 at most
  std::optional<sdk::Failure> refusal_;        ///< of this step; empty: none
};

}  // namespace driftd::http
