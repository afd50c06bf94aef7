// SPDX-License-Identifier: Apache-2.0
// A host that is older than this header has a shorter table, and a function behind its end must not be called. So a
// provider that was built today runs under every host of this major version, and needs no checks of its own.
#pragma once

#include <cstring>
#include <mutex>

#include "driftd/sdk/call.hpp"

namespace driftd::sdk::detail {

/// Returns a full table whose functions do without the host: what could be lost answers UNSUPPORTED, a log line and a
/// diagnostic are dropped, nothing is cancelled or late, a permit is given. Only what minors after 1.0 add is ever
/// missing, so for a host of 1.0 none of these is used.
inline driftd_host_table bare_host() {
  driftd_host_table t{};
  t.size = sizeof t;  // ours: after the copy in take_host() no slot is missing
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

/// Sets `host`: to the given table, or to a copy in which bare_host() fills what an older, shorter one does not have. A
/// second call with the same table changes nothing. [any thread]
inline void take_host(const driftd_host_table* given) {
  static std::mutex mutex;  // driftd_provider_v1 may be called more than once, on any thread
  static driftd_host_table table = bare_host();
  const std::lock_guard lock(mutex);
  if (given->size < sizeof *given && host != &table) {  // not written twice: other threads may be reading it
    std::memcpy(&table, given, given->size);
    table.size = sizeof table;
    host = &table;
  } else if (given->size >= sizeof *given && host != given) {
    host = given;
  }
}

}  // namespace driftd::sdk::detail
