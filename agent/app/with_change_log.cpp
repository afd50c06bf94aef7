// SPDX-License-Identifier: Apache-2.0
// Of driftd-grpc only: without_grpc.cpp is its counterpart in driftd.
#include "app/change_log.hpp"
#include "grpc/change_log_client.hpp"

namespace driftd::app {

Status check_change_log(const config::Config& config) {
  return config.change_log.on() ? rpc::check_change_log_target(config.change_log.target) : Status{};
}

Result<std::unique_ptr<core::ChangeLogReceiver>> make_change_log_receiver(const config::Config& config,
                                                                          asio::any_io_executor core) {
  DRIFTD_CHECK(check_change_log(config));
  return rpc::open_change_log(config.change_log.target, config.agent.name, config.agent.cluster, std::move(core));
}

}  // namespace driftd::app
