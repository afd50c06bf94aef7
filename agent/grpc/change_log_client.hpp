// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/ports/change_log.hpp"
#include "grpc/change_log_settings.hpp"

namespace driftd::rpc {

/// Returns `invalid` or `denied` if the files of change_log.tls cannot be used; the message names the setting.
Status check_change_log_target(const ChangeLogTarget& target);

/// Opens a client of driftd.changelog.v1.ChangeLog, which connects when it has something to send. Entries name `agent`
/// and `cluster`. Core thread.
std::unique_ptr<core::ChangeLogReceiver> open_change_log(ChangeLogTarget target, std::string agent, std::string cluster,
                                                         asio::any_io_executor core);

}  // namespace driftd::rpc
