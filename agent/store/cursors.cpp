// SPDX-License-Identifier: Apache-2.0
#include "store/cursors.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <algorithm>

#include "base/encrypt.hpp"
#include "base/log.hpp"
#include "store/checksums.hpp"
#include "store/rotate.hpp"

namespace driftd::store {
namespace {

std::string_view column_of(CursorOf of) { return of == CursorOf::refresh ? "cursor" : "watch_cursor"; }

/// Derives a key for each backend, so that the number of random nonces of a key stays far below its limit.
Key key_of(const InstallationKey& key, const std::string& uid) {
  const Key& newest = key.store.newest();
  std::string made = hmac_raw({reinterpret_cast<const char*>(newest.data()), newest.size()}, "driftd cursor " + uid);
  Key out{};
  std::copy_n(made.begin(), std::min(made.size(), out.size()), out.begin());
  OPENSSL_cleanse(made.data(), made.size());
  return out;
}

std::string about(const std::string& uid, CursorOf of) { return std::string(column_of(of)) + " of backend " + uid; }

/// Decodes Base64. Returns empty if the text is not Base64.
std::string bytes_of_base64(const std::string& text) {
  if (text.empty() || text.size() % 4 != 0) return {};
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  if (size < 0 || static_cast<std::size_t>(size) != out.size()) return {};
  out.resize(out.size() - padding);
  return out;
}

/// A non-empty stored cursor and its backend.
struct Kept {
  std::int64_t backend = 0;
  std::string uid, stored;
};

Result<std::vector<Kept>> find_undecryptable(SqliteStore::State& state, CursorOf of) {
  std::vector<Kept> out;
  const std::string column(column_of(of));
  auto query = state.db->statement("SELECT id, uid, " + column + " FROM backend WHERE " + column + " <> ''");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    Kept one{query.integer(0), query.text(1), query.text(2)};
    if (decrypt_cursor(state.key, one.uid, of, one.stored).empty()) out.push_back(std::move(one));
  }
}

Status forget(SqliteStore::State& state, const std::vector<Kept>& some, CursorOf of) {
  const std::string sql =
      "UPDATE backend SET " + std::string(column_of(of)) + " = '', " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND) " WHERE id = ?";
  for (const auto& one : some) DRIFTD_CHECK(state.db->statement(sql).bind(one.backend).run());
  return {};
}

}  // namespace

Result<std::string> encrypt_cursor(const InstallationKey& key, const std::string& uid, CursorOf of,
                                   const std::string& cursor) {
  if (cursor.empty()) return std::string();
  Key made = key_of(key, uid);
  const auto bytes = encrypt(made, about(uid, of), cursor);
  OPENSSL_cleanse(made.data(), made.size());
  if (!bytes) return fail(bytes.error());
  return base64(*bytes);
}

std::string decrypt_cursor(const InstallationKey& key, const std::string& uid, CursorOf of, const std::string& stored) {
  const std::string bytes = bytes_of_base64(stored);
  if (bytes.empty()) return {};
  Key made = key_of(key, uid);
  auto out = decrypt(made, about(uid, of), bytes);
  OPENSSL_cleanse(made.data(), made.size());
  return out ? std::move(*out) : std::string();
}

Status drop_undecryptable_cursors(SqliteStore::State& state) {
  DRIFTD_TRY(const auto refresh, find_undecryptable(state, CursorOf::refresh));
  DRIFTD_TRY(const auto watch, find_undecryptable(state, CursorOf::watch));
  if (refresh.empty() && watch.empty()) return {};
  DRIFTD_CHECK(state.db->statement("PRAGMA secure_delete = ON").run());
  const auto work = [&]() -> Status {
    DRIFTD_CHECK(forget(state, refresh, CursorOf::refresh));
    DRIFTD_CHECK(forget(state, watch, CursorOf::watch));
    return leave_unswept(*state.db);
  };
  DRIFTD_CHECK(run_now(state, work));
  log::room("store").info(
      "{} cursors of providers could not be opened (an older driftd kept them as they came, they are of another key, "
      "or damaged) and "
      "are dropped: the next refresh of these backends lists everything",
      refresh.size() + watch.size());
  return {};
}

Status drop_cursors(Connection& db) {
  return db.execute("UPDATE backend SET cursor = '', watch_cursor = '', " DRIFTD_UNSIGN(DRIFTD_CRC_BACKEND));
}

}  // namespace driftd::store
