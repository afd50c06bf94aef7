// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "store/sqlite.hpp"

namespace driftd::store {

/// One step of the schema; its number is the user_version that it leaves behind. Applied once, whole or not at all.
struct Migration {
  int number = 0;
  std::string_view sql;
  Status (*then)(Connection& db) = nullptr;  ///< in the same transaction
};

/// The steps that this build knows, by number, without gaps.
std::span<const Migration> migrations();

/// Checks that `file`, open as `db`, is whole and ours, and brings it to the newest schema. Before a step on a store
/// that is in use, copies it to `<file>.before-v<N>`. `corrupt`: damaged or not a driftd store; `conflict`: written by
/// a newer driftd.
Status migrate(Connection& db, const std::filesystem::path& file, std::span<const Migration> steps);

/// Whether the application id of `db` is driftd's.
Result<bool> is_ours(Connection& db);
/// Whether this build can use the store in `file`, open as `db`, as migrate() would: `corrupt` or `conflict`.
Status check_version(Connection& db, const std::filesystem::path& file, std::span<const Migration> steps);

/// `corrupt`: what SQLite found in `file` and the ways out.
Error damaged(const std::filesystem::path& file, const std::string& found);

}  // namespace driftd::store
