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

/// Borrows the bytes of an ABI text, which in a provider function last until the function returns: copy what is kept.
inline std::string_view view(driftd_str s) { return {s.data, static_cast<std::size_t>(s.len)}; }
/// Borrows: valid as long as the bytes behind `s`, never for the ABI to free.
inline driftd_str str(std::string_view s) { return {s.data(), s.size()}; }

/// Copies a struct of the host, which may be older (shorter) or newer (longer) than ours. Missing members are zero,
/// which means "as before"; members that this header does not know are cut off. Pointers inside are still the host's.
template <class T>
T adopt(const T* given) {
  T out{};
  std::memcpy(static_cast<void*>(&out), given, given->size < sizeof out ? given->size : sizeof out);
  out.size = sizeof out;
  return out;
}

/// Ends a provider function with a status; thrown anywhere in it, turned into a diagnostic at the border.
/// A code that is not a failure (OK, FINISH_SOON) becomes DRIFTD_INTERNAL. The code decides what the agent does next
/// (see the list in provider.h): UNAVAILABLE is retried with backoff, INVALID waits for other settings.
struct Failure : std::runtime_error {
  /// `text` says to an operator what was found, what was expected and what to do; it contains no secret.
  Failure(driftd_status code, const std::string& text, std::string kind = {}, std::string right = {},
          std::int64_t retry_after_ms = 0)
      : std::runtime_error(text),
        code(code > DRIFTD_OK ? code : DRIFTD_INTERNAL),
        kind(std::move(kind)),
        right(std::move(right)),
        retry_after_ms(retry_after_ms) {}
  driftd_status code;           ///< never OK
  std::string kind;             ///< the kind that is incomplete; empty: all
  std::string right;            ///< DENIED: the right to grant, as the system names it
  std::int64_t retry_after_ms;  ///< when a retry makes sense, for THROTTLED; 0: the host decides
};

/// Names one resource (driftd_identity): `{"role", "app"}`.
struct Identity {
  std::string kind, id;   ///< the id is unique within its kind
  std::string backend{};  ///< empty: the backend of this instance
};

/// An attribute that exists but could not be read (driftd_unread). The agent judges it as unknown, never as drift.
struct Unread {
  std::string path;                    ///< attribute path: `a.b[0].c`; `a.**`: everything below `a`
  driftd_status code = DRIFTD_DENIED;  ///< why, as a status
  std::string reason;                  ///< one sentence that names the missing right
};

/// One resource as read now (driftd_record). `body` and `status` are JSON objects as text. The braces let a provider
/// name only the members that it sets, without a warning.
struct Record {
  std::string kind{}, id{};
  std::string body = "{}";                        ///< attributes, which can drift; raw values, at most 4 MiB
  std::string status = "{}";                      ///< volatile and health; shown, never compared, at most 1 MiB
  std::string version{};                          ///< etag, resourceVersion, serial; opaque
  std::string external_name{};                    ///< identity that the system gave; another one means: recreated
  std::string origin{};                           ///< "terraform-state"; empty: the provider's id
  std::string backend{};                          ///< empty: the backend of this instance
  std::vector<Unread> unread{};                   ///< attributes that are not in `body` because of an error
  std::vector<std::string> sensitive{};           ///< paths that are secret beyond what the schema says
  std::map<std::string, std::string> metadata{};  ///< goes into the event
  std::int64_t observed_ns = 0;                   ///< wall clock when the request was sent; 0: when the call began
  std::uint32_t schema_revision = 1;              ///< of the kind's driftd-schema/1 document
  bool tombstone = false;                         ///< watch only: the resource is gone and `body` is ignored
};

/// What went wrong in a call, for people and for the agent's judgement (driftd_diagnostic). Never contains a secret.
struct Diagnostic {
  driftd_status code = DRIFTD_INTERNAL;
  std::string kind{}, id{};         ///< what could not be read; no id: the whole kind, no kind: all of it
  std::string path{};               ///< attribute, or `settings.tls.ca` for a setting
  std::string text{};               ///< what, expected, found, next step
  std::string right{};              ///< DENIED: the right to grant, as the system names it
  std::int64_t retry_after_ms = 0;  ///< 0: the host decides
  std::string backend{};            ///< empty: the backend of this instance
};

/// Reachability now (driftd_health).
struct Health {
  std::uint32_t state = DRIFTD_HEALTH_UP;  ///< DRIFTD_HEALTH_*
  std::int64_t latency_us = 0;             ///< microseconds of one round trip
  std::string reason{};                    ///< why it is not UP
  std::string role{};                      ///< "primary", "replica"; empty: none
  std::string system_identity{};           ///< of the system itself, such as a cluster id; empty: none
  std::string server_version{};
};

/// What refresh() is asked for (driftd_refresh_args).
struct Refresh {
  bool full = false;               ///< ignore shortcuts and list everything
  std::string cursor;              ///< of the last checkpoint that the agent stored; empty: from the start
  std::vector<std::string> kinds;  ///< empty: all that the settings include
  /// Returns true if the kind is asked for. The settings may still exclude it: see Scope.
  bool wants(std::string_view kind) const {
    for (const auto& k : kinds) {
      if (k == kind) return true;
    }
    return kinds.empty();
  }
};

/// What refresh() answers besides its records (driftd_refresh_result).
struct RefreshResult {
  bool unchanged = false;    ///< nothing changed since the cursor and nothing was emitted
  std::int64_t next_ms = 0;  ///< when to refresh again, at least 500; 0: the host's interval
};

}  // namespace driftd::sdk
