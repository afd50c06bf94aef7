// SPDX-License-Identifier: Apache-2.0
// Values of the C++ SDK: owning counterparts of the ABI's structs.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/provider.h"

namespace driftd::sdk {

inline std::string_view view(driftd_str s) { return {s.data, static_cast<std::size_t>(s.len)}; }
inline driftd_str str(std::string_view s) { return {s.data(), s.size()}; }

/// A struct of the host, which may be older (shorter) or newer (longer) than ours: what is missing is zero.
template <class T>
T adopt(const T* given) {
  T out{};
  std::memcpy(static_cast<void*>(&out), given, given->size < sizeof out ? given->size : sizeof out);
  out.size = sizeof out;
  return out;
}

/// Ends a provider function with a status; thrown anywhere in it, turned into a diagnostic at the border.
/// A code that is no failure (OK, FINISH_SOON) becomes DRIFTD_INTERNAL.
struct Failure : std::runtime_error {
  Failure(driftd_status code, const std::string& text, std::string kind = {}, std::string right = {},
          std::int64_t retry_after_ms = 0)
      : std::runtime_error(text),
        code(code > DRIFTD_OK ? code : DRIFTD_INTERNAL),
        kind(std::move(kind)),
        right(std::move(right)),
        retry_after_ms(retry_after_ms) {}
  driftd_status code;
  std::string kind;   ///< the kind that is incomplete; empty: all
  std::string right;  ///< DENIED: the right to grant, as the system names it
  std::int64_t retry_after_ms;
};

struct Identity {
  std::string kind, id;
  std::string backend{};  ///< empty: the backend of this instance
};

struct Unread {
  std::string path;
  driftd_status code = DRIFTD_DENIED;
  std::string reason;
};

/// One resource as read now (driftd_record). `body` and `status` are JSON objects as text. The braces let a provider
/// name only the members that it sets, without a warning.
struct Record {
  std::string kind{}, id{};
  std::string body = "{}", status = "{}";
  std::string version{}, external_name{}, origin{}, backend{};
  std::vector<Unread> unread{};
  std::vector<std::string> sensitive{};
  std::map<std::string, std::string> metadata{};
  std::int64_t observed_ns = 0;  ///< 0: when the call began
  std::uint32_t schema_revision = 1;
  bool tombstone = false;
};

struct Diagnostic {
  driftd_status code = DRIFTD_INTERNAL;
  std::string kind{}, id{}, path{}, text{}, right{};
  std::int64_t retry_after_ms = 0;
  std::string backend{};  ///< empty: the backend of this instance
};

struct Health {
  std::uint32_t state = DRIFTD_HEALTH_UP;
  std::int64_t latency_us = 0;
  std::string reason{}, role{}, system_identity{}, server_version{};
};

struct Refresh {
  bool full = false;
  std::string cursor;
  std::vector<std::string> kinds;  ///< empty: all
  bool wants(std::string_view kind) const {
    for (const auto& k : kinds) {
      if (k == kind) return true;
    }
    return kinds.empty();
  }
};

struct RefreshResult {
  bool unchanged = false;
  std::int64_t next_ms = 0;
};

}  // namespace driftd::sdk
