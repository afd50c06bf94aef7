// SPDX-License-Identifier: Apache-2.0
#include "app/links.hpp"

#include <algorithm>

namespace driftd::app {

Links::Links(store::SqliteStore& store, const Clock& clock, core::LinkSettings settings)
    : store_(store),
      clock_(clock),
      settings_(std::move(settings)),
      made_(store, clock, settings_) {}

sinks::ChatLinkMaker Links::maker(const std::string& sink) {
  if (std::count(settings_.sinks.begin(), settings_.sinks.end(), sink) == 0) return {};
  return [this, sink](std::string id, std::vector<sinks::ChatDrift> drifts) {
    return with_links(sink, std::move(id), std::move(drifts));
  };
}

Task<Result<std::vector<sinks::ChatDrift>>> Links::with_links(std::string sink, std::string id,
                                                              std::vector<sinks::ChatDrift> drifts) {
  std::vector<delivery::DecisionLinks::Shown> shown;
  for (const auto& drift : drifts) {
    const auto at = std::min(drift.ref.find('@'), drift.ref.size());
    shown.push_back({drift.id, drift.ref.substr(std::min(at + 1, drift.ref.size())),
                     drift.actions.find("APPROVE") != std::string::npos});
  }
  DRIFTD_CO_TRY(auto links, co_await made_.make(std::move(id), std::move(sink), std::move(shown)));
  for (std::size_t i = 0; i < drifts.size(); ++i) {
    for (auto& link : links[i]) drifts[i].links.push_back({std::move(link.action), std::move(link.url)});
  }
  co_return drifts;
}

Status Links::listen(asio::any_io_executor core, core::Control& control) {
  if (settings_.sinks.empty()) return {};
  admin::LinkServerSettings settings;
  settings.listen = settings_.listen;
  DRIFTD_TRY(server_, admin::LinkServer::open(core, std::move(settings), {control, store_, store_, clock_}));
  server_->start();
  return {};
}

Task<void> Links::audit_unwritten_denials(bool all) {
  if (server_) co_await server_->audit_unwritten_denials(all);
}

Task<void> Links::stop() {
  if (server_) co_await server_->stop();
}

}  // namespace driftd::app
