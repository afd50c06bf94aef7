// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "store/sqlite.hpp"

namespace driftd::store {

/// One step of the schema; its number is the user_version afterwards. It is applied once, completely or not at all.
struct Migration {
  int number = 0;
  std::string_view sql;
  Status (*then)(Connection& db) = nullptr;  ///< runs in the same transaction
};

/// Returns the steps that this build knows, in order and without gaps.
std::span<const Migration> migrations();

/// Checks that `file`, open as `db`, is an undamaged driftd store, and migrates it to the newest schema. Copies a store
/// that is in use to `<file>.before-v<N>` before a step. Returns `corrupt` if it is damaged or not a driftd store, and
/// `conflict` if a newer driftd wrote it.
Status migrate(Connection& db, const std::filesystem::path& file, std::span<const Migration> steps);

/// Returns true if the application id of `db` is driftd's.
Result<bool> is_ours(Connection& db);
/// Checks that this build can use the store in `file`, open as `db`. Fails as migrate() would, with `corrupt` or
/// `conflict`.
Status check_version(Connection& db, const std::filesystem::path& file, std::span<const Migration> steps);

/// Returns a `corrupt` error with what SQLite found in `file` and the ways out.
Error damaged(const std::filesystem::path& file, const std::string& found);

}  // namespace driftd::store
