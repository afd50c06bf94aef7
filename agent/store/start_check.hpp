// SPDX-License-Identifier: Apache-2.0
// How much of a store is read before it is used. Its state (what judging and delivery rest on) always is: backends,
// resources, open drifts, sinks, what waits for a sink. Its history (events, delivered routes, ended drifts, audit)
// only grows, and a start must not take longer with it: in a large store, it is checked while the agent runs
// (store::verify() in a process of its own), and whenever a row is used.
#pragma once

#include <filesystem>

#include "store/sqlite.hpp"

namespace driftd::store {

struct Settings;

/// Returns true if the whole store must be checked before it is used: it is at most Settings::checked_at_start bytes
/// large, or suspect.
Result<bool> must_check_whole(const Settings& settings);

/// Returns true if nothing is wrong with the state: indexes agree with their tables, checksums are right, a resource
/// with open drifts has some, and each sink's routes add up to its totals. False if anything is; a check of the whole
/// store then names it. `corrupt` is never returned.
Result<bool> is_state_sound(Connection& db);

/// Returns true from mark_suspect() to unmark_suspect(). Then events are checked at the start, too.
bool is_suspect(const std::filesystem::path& data_dir);
/// Makes the next start check the whole store before it uses any of it. `why` is for that start's log. Durable.
Status mark_suspect(const std::filesystem::path& data_dir, const std::string& why);
/// The whole store was checked: it is not suspect any more.
Status unmark_suspect(const std::filesystem::path& data_dir);

}  // namespace driftd::store
