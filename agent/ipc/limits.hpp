// SPDX-License-Identifier: Apache-2.0
// Maximum sizes. The worker enforces them on its plugin, and the agent enforces them on the worker.
#pragma once

#include <chrono>
#include <cstddef>

namespace driftd::ipc {

inline constexpr std::size_t kMaxBody = 4u << 20;          ///< bytes of a record's body as the plugin gives it
inline constexpr std::size_t kMaxRedacted = 6u << 20;      ///< bytes of a whole record after its secrets became digests
inline constexpr std::size_t kMaxCursor = 64u << 10;       ///< bytes
inline constexpr std::size_t kMaxName = 4u << 10;          ///< bytes of kind, id, version, ... of one record
inline constexpr std::size_t kMaxText = 8u << 10;          ///< bytes of a text of a diagnostic or health report
inline constexpr std::size_t kMaxListItems = 4096;         ///< items of each list of one record
inline constexpr std::size_t kMaxDiagnostics = 1000;       ///< kept for one call, plus one for each requested identity
inline constexpr std::size_t kMaxDocument = 1u << 20;      ///< bytes of describe and of each schema of a plugin
inline constexpr std::size_t kMaxEventBody = 32u << 20;    ///< bytes of the body of an event for a sink plugin
inline constexpr std::size_t kMaxDelivery = 64u << 20;     ///< bytes of all payload of one deliver
inline constexpr std::size_t kMaxVerdictBytes = 4u << 20;  ///< bytes of all verdicts of one deliver
inline constexpr std::size_t kMaxBatchEvents = 256;        ///< events of one deliver
inline constexpr std::size_t kLeastBatchBytes = 1024, kMaxBatchBytes = 16u << 20;  ///< what a sink plugin may declare
inline constexpr std::size_t kMaxApplyChanges = 256, kMaxApplyKey = 128;           ///< of one apply; the key in bytes
inline constexpr std::size_t kMaxApplyBytes = 1u << 20;    ///< bytes of paths and values of one apply
inline constexpr std::size_t kMaxApplyDetails = 1024;      ///< details of one outcome of apply
inline constexpr std::size_t kMaxCommand = 64u << 10;      ///< bytes of one command in an outcome of apply
inline constexpr std::size_t kMaxCommandBytes = 4u << 20;  ///< bytes of all of them
inline constexpr std::size_t kMaxReportedNames = 32;       ///< names of broken rules, misuses or budgets of one result
inline constexpr std::size_t kMaxRateLimiters = 256;       ///< buckets of permits that a plugin may name in a session
inline constexpr std::chrono::milliseconds kMaxRetryAfter{3'600'000};  ///< longest pause that a sink plugin may ask for
inline constexpr std::chrono::milliseconds kMaxWait{86'400'000};       ///< longest delay that a plugin may ask for

}  // namespace driftd::ipc
