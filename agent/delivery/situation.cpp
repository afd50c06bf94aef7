// SPDX-License-Identifier: Apache-2.0
#include "delivery/situation.hpp"

namespace driftd::delivery {

std::string_view render(EndpointState state) {
  switch (state) {
    case EndpointState::disabled:
      return "disabled";
    case EndpointState::circuit_open:
      return "circuit open";
    case EndpointState::not_started:
      return "not started";
    case EndpointState::unchecked:
      return "unchecked";
    case EndpointState::half_open:
      return "half open";
    case EndpointState::ready:
      return "ready";
  }
  return "?";
}

}  // namespace driftd::delivery
