// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "admin/link_server.hpp"
#include "delivery/decision_links.hpp"
#include "delivery/notifier.hpp"
#include "sinks/common/chat/message.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// The links in notifications: made for the sinks that have them, and answered on a port of their own. Core thread.
/// Store and clock must outlive it.
class Links {
 public:
  Links(store::SqliteStore& store, const Clock& clock, core::LinkSettings settings);
  /// Returns what makes the links in the messages of a sink. Empty if they have none. It must not outlive this.
  sinks::ChatLinkMaker maker(const std::string& sink);
  /// Opens the port of the pages, if there are links. `control` must outlive it until stop().
  Status listen(asio::any_io_executor core, core::Control& control);
  Task<void> stop();
  /// As admin::LinkServer::audit_unwritten_denials().
  Task<void> audit_unwritten_denials(bool all);

 private:
  Task<Result<std::vector<sinks::ChatDrift>>> with_links(std::string sink, std::string id,
                                                         std::vector<sinks::ChatDrift> drifts);

  store::SqliteStore& store_;
  const Clock& clock_;
  const core::LinkSettings settings_;
  delivery::DecisionLinks made_;
  std::unique_ptr<admin::LinkServer> server_;  ///< null: there are no links, or it does not listen yet
};

/// What an agent has of notifications.
struct NotifyParts {
  std::unique_ptr<Links> links;  ///< outlives the sinks, which ask it for links
  std::shared_ptr<delivery::Notifier> notifier;
};

}  // namespace driftd::app
