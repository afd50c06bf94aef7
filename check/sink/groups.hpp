// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/check.hpp"

namespace driftd::check::sink {

// The groups of checks for sinks, besides those of the binary. Each has a file of its own.
std::span<const Check> negotiation_checks();
std::span<const Check> memory_checks();
std::span<const Check> verdicts_checks();
std::span<const Check> content_checks();
std::span<const Check> order_checks();
std::span<const Check> threads_checks();
std::span<const Check> deadline_checks();
std::span<const Check> probe_checks();
std::span<const Check> schema_checks();
std::span<const Check> secrets_checks();
std::span<const Check> chaos_checks();

}  // namespace driftd::check::sink
