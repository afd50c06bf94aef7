// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/call.hpp"
#include "kafka/broker_connection.hpp"
#include "kafka/settings.hpp"

namespace driftd::kafka {

/// Logs in on this connection by the mechanism of the settings; does nothing without one. Throws UNAUTHENTICATED if the
/// broker refuses the login or does not prove that it knows the password (SCRAM), UNSUPPORTED if the listener does not
/// offer the mechanism, CORRUPT, or what the connection throws.
void sasl_login(sdk::Call& call, const Settings& settings, BrokerConnection& connection);

}  // namespace driftd::kafka
