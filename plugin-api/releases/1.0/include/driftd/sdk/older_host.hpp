// SPDX-License-Identifier: Apache-2.0
// A host that is older than this header has a shorter table.
#pragma once

#include <cstring>
#include <mutex>

#include "driftd/sdk/call.hpp"

namespace driftd::sdk::detail {

/// A table in which each function says that the host does not have it. Only what minors after 1.0 add is ever missing.
inline driftd_host_table bare_host() {
  driftd_host_table t{};
  t.size = sizeof t;
  t.now = []() -> std::int64_t { return 0; };
  t.log = [](driftd_call, std::int32_t, driftd_str, const driftd_kv*, std::uint32_t) {};
  t.metric = [](driftd_call, driftd_str, double) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.cancelled = [](driftd_call) -> std::int32_t { return 0; };
  t.deadline = [](driftd_call) -> std::int64_t { return INT64_MAX; };
  t.cancel_fd = [](driftd_call) -> std::int32_t { return -1; };
  t.emit = [](driftd_call, const driftd_record*, std::uint32_t, std::uint32_t) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.mark = [](driftd_call, const driftd_mark*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.diag = [](driftd_call, const driftd_diagnostic*) {};
  t.permit = [](driftd_call, driftd_str, std::uint32_t) -> driftd_status { return DRIFTD_OK; };
  t.secret = [](driftd_call, driftd_str, driftd_use_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.query = [](driftd_str, std::uint32_t) -> const void* { return nullptr; };
  return t;
}

/// Keeps the host's table, or a full one that stands in for what an older host does not have. [any thread]
inline void take_host(const driftd_host_table* given) {
  static std::mutex mutex;
  static driftd_host_table table = bare_host();
  const std::lock_guard lock(mutex);
  if (given->size < sizeof *given && host != &table) {
    std::memcpy(&table, given, given->size);
    table.size = sizeof table;
    host = &table;
  } else if (given->size >= sizeof *given && host != given) {
    host = given;
  }
}

}  // namespace driftd::sdk::detail
