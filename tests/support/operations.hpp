// SPDX-License-Identifier: Apache-2.0
// Operations as the enforcer commits them.
#pragma once

#include <cstdio>
#include <string>

#include "core/ports/store.hpp"

namespace driftd::test {

/// Returns an operation that ended well on one of a thousand topics. `padding`: bytes of text in each of its bodies.
inline core::Enforcement ended_operation(int number, std::size_t padding = 0) {
  char id[32];
  std::snprintf(id, sizeof id, "op-%016x", static_cast<unsigned>(number));
  core::Enforcement out;
  out.id = out.key = id;
  out.backend_uid = "b000000000000001";
  out.backend = "orders";
  out.resource = {"topic", "orders-" + std::to_string(number % 1'000)};
  out.external_name = "id-" + std::to_string(number);
  out.drift_id = "d-0123456789abcdef";
  out.digest = std::string(64, 'a');
  out.changes = {{"config[\"retention.ms\"]", core::ChangeClass::config, "\"3600000\"", "\"604800000\"", false}};
  const std::string text(padding, 'x');
  out.desired = R"({"config":{"retention.ms":"604800000"},"text":")" + text + R"("})";
  out.observed = R"({"config":{"retention.ms":"3600000"},"text":")" + text + R"("})";
  out.provider = "redis";
  out.provider_version = "1.0.0";
  out.api_version = "redis/v1";
  out.trace_id = std::string(32, 'b');
  out.actor = "driftd";
  out.state = core::EnforcementState::done;
  out.commands = {"CONFIG SET maxmemory-policy noeviction"};
  out.attempts = 1;
  out.planned_ns = 1'760'000'000'000'000'000;
  out.updated_ns = out.planned_ns + 1'000'000;
  out.ended_ns = out.updated_ns;
  return out;
}

}  // namespace driftd::test
