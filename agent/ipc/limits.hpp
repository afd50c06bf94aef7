// SPDX-License-Identifier: Apache-2.0
// What one record, diagnostic or answer may weigh. The worker holds its plugin to it, the agent holds the worker to it.
#pragma once

#include <chrono>
#include <cstddef>

namespace driftd::ipc {

inline constexpr std::size_t kMaxBody = 4u << 20;      ///< bytes of a record's body as the plugin gives it
inline constexpr std::size_t kMaxRedacted = 6u << 20;  ///< bytes of a whole record, its secrets now digests
inline constexpr std::size_t kMaxCursor = 64u << 10;   ///< bytes
inline constexpr std::size_t kMaxName = 4u << 10;      ///< kind, id, version, ... of one record, bytes
inline constexpr std::size_t kMaxText = 8u << 10;      ///< texts of diagnostics and health, bytes
inline constexpr std::size_t kMaxParts = 4096;         ///< unread paths, metadata, sensitive paths of one record
inline constexpr std::size_t kMaxDiagnostics = 1000;   ///< kept of one call, beside one for each identity asked
inline constexpr std::size_t kMaxDocument = 1u << 20;  ///< describe and each schema of a plugin, bytes
inline constexpr std::size_t kMaxRules = 32;           ///< of the ABI, that one answer says are broken
inline constexpr std::size_t kMaxBuckets = 256;        ///< rate limiters of one session
inline constexpr std::chrono::milliseconds kMaxWait{86'400'000};  ///< the furthest that a plugin may put something off

}  // namespace driftd::ipc
