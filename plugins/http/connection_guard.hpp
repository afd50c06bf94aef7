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

/// Of a connection: addresses and ports.
struct Endpoints {
  std::string to, from;
  int to_port = 0, from_port = 0;
  auto operator<=>(const Endpoints&) const = default;
};

/// Whether requests may go over the connections of a wire: its owner is asked about each. Over HTTP/2 requests share
/// them, and libcurl may send several within one step: a refusal stands for that step.
class ConnectionGuard {
 public:
  /// Empty: every connection will do.
  explicit ConnectionGuard(std::function<void(sdk::Call&)> ask) : ask_(std::move(ask)) {}

  bool needed() const { return static_cast<bool>(ask_); }

  /// Before each request: throws the refusal. `fresh`: this request made the connection. Whoever made it may have ended
  /// before it came here.
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

  /// The step is over: what was refused in it.
  std::optional<sdk::Failure> take_refusal() { return std::exchange(refusal_, std::nullopt); }
  /// No connection of before is left.
  void forget() { agreed_.clear(); }

 private:
  static constexpr std::size_t kRemembered = 256;

  const std::function<void(sdk::Call&)> ask_;
  std::set<Endpoints> agreed_;
  std::optional<sdk::Failure> refusal_;
};

}  // namespace driftd::http
