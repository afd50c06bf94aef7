// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"

namespace driftd::keycloak {

/// An answer of the admin API.
struct Answer {
  int status = 0;            ///< of HTTP
  nlohmann::json body;       ///< null if there is none
  std::int64_t sent_ns = 0;  ///< wall clock of this machine when the request was sent
  bool ok() const { return status >= 200 && status < 300; }
};

/// A request that changes something.
struct WriteRequest {
  std::string method, path;  ///< `path` is below /admin/realms
  nlohmann::json body;       ///< null: none
};

/// The admin API of one Keycloak, as far as this provider needs it. Thread-safe.
class AdminApi {
 public:
  virtual ~AdminApi() = default;
  /// Gets `path` below /admin/realms, such as `/orders/clients?first=0`. Returns the answer of whatever status but 401
  /// and 5xx. Throws UNAUTHENTICATED (the login was refused), UNAVAILABLE, THROTTLED, DEADLINE, CANCELLED, BUDGET (an
  /// answer too large) or CORRUPT (an answer that is not JSON).
  virtual Answer get(sdk::Call& call, const std::string& path) = 0;
  /// Gets several paths, some of them at the same time. The answers are in the order of the paths.
  virtual std::vector<Answer> get_all(sdk::Call& call, const std::vector<std::string>& paths) = 0;
  /// Sends a change. Returns the answer of whatever status but 401, 429 and a 5xx in which Keycloak does not say why;
  /// its body is null if it is not JSON. Throws as get(); after UNAVAILABLE, DEADLINE and CANCELLED nobody knows
  /// whether it took effect.
  virtual Answer change(sdk::Call& call, const WriteRequest& write) = 0;
  /// Returns the milliseconds since the epoch by the server's clock. The clock of this machine is never used for it:
  /// it is what the server said last, plus the time that has passed since. Throws as get().
  virtual std::int64_t server_ms(sdk::Call& call) = 0;
};

}  // namespace driftd::keycloak
