// SPDX-License-Identifier: Apache-2.0
// Small pages, resources and events of one backend, `orders`.
#pragma once

#include <string>
#include <vector>

#include "core/ports/store.hpp"

namespace driftd::test {

inline core::BackendRow backend_row(const std::string& uid = "b000000000000001", const std::string& name = "orders") {
  core::BackendRow row;
  row.uid = uid;
  row.name = name;
  row.type = "redis";
  row.provider = "redis";
  row.registration = R"({"name":")" + name + R"("})";
  return row;
}

inline core::ResourceWrite resource_write(const std::string& id, const std::string& body = R"({"a":1})",
                                          std::int64_t revision = 0) {
  core::ResourceWrite write;
  write.next.id = {"config", id};
  write.next.revision = revision;
  write.next.baseline = body;
  write.next.observed = body;
  return write;
}

inline core::EventDraft event_draft(const std::string& resource, std::vector<std::string> sinks = {"ops"},
                                    const core::BackendRow& backend = backend_row()) {
  core::BackendEvent event;
  event.backend_uid = backend.uid;
  event.backend_name = backend.name;
  event.backend_type = backend.type;
  event.provider = backend.provider;
  event.type = core::ChangeType::config_drift_detected;
  event.what = "config.updated";
  event.source = "redis";
  event.resource = core::ResourceId{"config", resource};
  return {std::move(event), std::move(sinks)};
}

/// Its payload has slightly more than the given number of bytes.
inline core::EventDraft large_draft(const std::string& resource, std::size_t bytes) {
  core::EventDraft out = event_draft(resource);
  std::get<core::BackendEvent>(out.event).cause = std::string(bytes, 'c');
  return out;
}

inline core::PageCommit page_of(std::vector<core::ResourceWrite> writes, std::vector<core::EventDraft> events = {}) {
  core::PageCommit page;
  page.backend_uid = backend_row().uid;
  page.writes = std::move(writes);
  page.events = std::move(events);
  return page;
}

inline core::PageCommit registration(const core::BackendRow& row = backend_row()) {
  core::PageCommit page;
  page.backend_uid = row.uid;
  page.backend = row;
  return page;
}

}  // namespace driftd::test
