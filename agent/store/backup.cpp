// SPDX-License-Identifier: Apache-2.0
#include "store/backup.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>
#include <functional>
#include <sstream>

#include "store/events.hpp"
#include "store/keys.hpp"
#include "store/mend.hpp"
#include "store/migrations.hpp"
#include "store/routes.hpp"

namespace driftd::store {
namespace {

namespace fs = std::filesystem;

using ConnectionPtr = std::unique_ptr<Connection>;

fs::path with(const fs::path& file, const std::string& suffix) { return file.string() + suffix; }

/// Returns `20261122T141500Z`, which sorts by time and is valid in file names.
std::string stamp_of(Nanos now) {
  std::string out;
  for (const char c : render_time(now).substr(0, 19)) {
    if (c != '-' && c != ':') out.push_back(c);
  }
  return out + "Z";
}

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error);
}

/// Unlike damaged(), gives no advice about the store, because the store is not what is wrong.
Error not_whole(const fs::path& file, const std::string& found) {
  return {Code::corrupt, file.string() + ": this file is not a whole backup: " + found};
}

/// Copies all pages in one step: a snapshot, for which no writer waits.
Status copy_pages(Connection& from, Connection& to) {
  sqlite3_backup* backup = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
  if (backup == nullptr) return fail(to.last_error("copy the store"));
  sqlite3_backup_step(backup, -1);
  if (sqlite3_backup_finish(backup) != SQLITE_OK) return fail(to.last_error("copy the store"));
  return to.statement("PRAGMA journal_mode = DELETE").run();  // one file, without a log beside it
}

void remove_copy(const fs::path& file) {
  std::error_code ignored;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(with(file, suffix), ignored);
}

/// A copy that is being made. It replaces one that a killed attempt left, and is removed unless it was renamed.
class Draft {
 public:
  explicit Draft(fs::path file) : file_(std::move(file)) { remove_copy(file_); }
  ~Draft() { remove_copy(file_); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  const fs::path& file() const { return file_; }

 private:
  fs::path file_;
};

Status check_events(Connection& db, const fs::path& file) {
  auto query = db.statement("SELECT " DRIFTD_EVENT_COLUMNS " FROM event e ORDER BY e.seq");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return {};
    EventPage page;
    if (!read_event(query, page)) {
      return fail(not_whole(file, "event row " + std::to_string(page.bad.front()) + " does not match its checksum"));
    }
  }
}

Status check_rows(Connection& db, const fs::path& file) {
  DRIFTD_CHECK(check_events(db, file));
  DRIFTD_TRY(const auto wrong, count_wrong(db));
  if (wrong != 0) return fail(not_whole(file, std::to_string(wrong) + " rows do not match their checksum"));
  DRIFTD_TRY(const auto unaccounted, count_unaccounted(db));
  if (unaccounted == 0) return {};
  return fail(not_whole(file, "routes or deliveries are missing, because the totals of a sink do not add up"));
}

Status check_structure(Connection& db, const fs::path& file) {
  auto check = db.statement("PRAGMA integrity_check(1)");
  const auto row = check.next();
  if (!row) return fail(not_whole(file, row.error().message));
  if (!*row || check.text(0) != "ok")
    return fail(not_whole(file, *row ? check.text(0) : "no answer of integrity_check"));
  return {};
}

Result<std::string> read_key_ids(Connection& db) {
  auto query = db.statement("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'key_ids'");
  DRIFTD_TRY(const bool found, query.next());
  return found ? ids_named(query.text(0)) : std::string();
}

Result<Content> read_content(Connection& db) {
  Content out;
  DRIFTD_TRY(out.backends, db.integer("SELECT count(*) FROM backend WHERE deleted_ns IS NULL"));
  DRIFTD_TRY(out.resources, db.integer("SELECT count(*) FROM resource WHERE present = 1"));
  DRIFTD_TRY(out.open_drifts, db.integer("SELECT count(*) FROM drift WHERE open = 1"));
  DRIFTD_TRY(out.events, db.integer("SELECT count(*) FROM event"));
  DRIFTD_TRY(out.newest_event, db.integer("SELECT max(seq) FROM event"));
  DRIFTD_TRY(out.newest_ns, db.integer("SELECT recorded_ns FROM event ORDER BY seq DESC LIMIT 1"));
  DRIFTD_TRY(out.key_ids, read_key_ids(db));
  return out;
}

Result<Content> verify_open(Connection& db, const fs::path& file) {
  const auto version = db.integer("PRAGMA user_version");
  if (!version) return fail(not_whole(file, version.error().message));
  const auto ours = is_ours(db);
  if (!ours) return fail(not_whole(file, ours.error().message));
  if (!*ours || *version == 0) return fail(not_whole(file, "it is no driftd store, or an empty one"));
  DRIFTD_CHECK(check_version(db, file, migrations()));
  DRIFTD_CHECK(check_structure(db, file));
  if (*version == migrations().back().number)
    DRIFTD_CHECK(check_rows(db, file));  // rows of older versions have other columns
  return read_content(db);
}

Status check_target(const fs::path& file) {
  std::error_code error;
  const auto folder = fs::weakly_canonical(file, error).parent_path();
  if (is_there(file) && is_there(folder / "lock") && is_there(folder / "store.db") &&
      fs::equivalent(file, folder / "store.db", error)) {
    return fail(Code::conflict, file.string() + " is the store of a data_dir and not written over; name another file");
  }
  if (!is_there(file) || fs::file_size(file, error) == 0) return {};
  const auto db = Connection::open(file.string(), Connection::Mode::read_only);
  const auto ours = db ? is_ours(**db) : Result<bool>(false);
  if (ours && *ours) return {};
  return fail(Code::conflict, file.string() + " is there and is no backup of a driftd store; name another file");
}

Status rename_durably(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error)
    return fail(Code::internal, "cannot rename " + from.string() + " to " + to.string() + ": " + error.message());
  return sync(to.parent_path().empty() ? fs::path(".") : to.parent_path());
}

Result<std::string> read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(Code::denied, "cannot read " + file.string());
  return text.str();
}

/// Gives a restored file to the owner of data_dir, for a restore by root.
Status give_to_owner(const fs::path& data_dir, const fs::path& file) {
  struct stat info {};
  if (::geteuid() != 0 || !is_there(file)) return {};
  if (::stat(data_dir.c_str(), &info) != 0 || ::lchown(file.c_str(), info.st_uid, info.st_gid) != 0) {
    return fail(Code::denied, "cannot give " + file.string() + " to the owner of " + data_dir.string());
  }
  return {};
}

/// The key of the restored store, and whether data_dir has it already.
struct ChosenKey {
  fs::path file;
  bool in_place = false;
};

/// Chooses the key. A key that was rotated after the copy was made opens the copy too, and the next start converts it:
/// the key of data_dir is never replaced by an older one.
Result<ChosenKey> choose_key(const fs::path& data_dir, const fs::path& from, const fs::path& asked,
                             const Content& content) {
  const fs::path own = data_dir / "installation.key", beside = with(from, ".key");
  ChosenKey out{asked, false};
  if (asked.empty()) out = is_there(beside) ? ChosenKey{beside, false} : ChosenKey{own, true};
  auto key = read_key(out.file);
  if (!key && key.error().code == Code::not_found) {
    return fail(Code::not_found, "no installation.key: neither " + beside.string() + " nor " + own.string() +
                                     " is there, and without it no stored digest can be compared. Name it with --key");
  }
  if (!key) return fail(key.error());
  std::string ids = ids_of(*key);
  const auto newer = read_key(own);
  if (!newer && newer.error().code != Code::not_found && asked.empty()) {
    return fail(newer.error().code,
                newer.error().message +
                    ". It may be of after a rotation, so the key beside the backup is not put in its "
                    "place; mend it, or name a key with --key");
  }
  if (!out.in_place && newer && ids_of(*newer).starts_with(ids + " ")) {
    out = {own, true};
    ids = ids_of(*newer);
  }
  if (content.key_ids.empty() || content.key_ids == ids || ids.starts_with(content.key_ids + " ")) return out;
  return fail(Code::conflict, key_fault(out.file.string(), ids, "the backup", content.key_ids) + ", named with --key");
}

Result<ChosenKey> check_given(const std::optional<GivenKey>& given, const Content& content) {
  const ChosenKey nothing_to_put{{}, true};
  if (!given || content.key_ids.empty()) return nothing_to_put;
  const std::string ids = ids_of(given->key);
  if (content.key_ids == ids || ids.starts_with(content.key_ids + " ")) return nothing_to_put;
  return fail(Code::conflict, key_fault(given->from, ids, "the backup", content.key_ids));
}

/// Unlike a start, root may do this: every file that it creates is given to the owner.
Status prepare(const fs::path& data_dir) {
  if (::geteuid() == 0 && is_there(data_dir)) return {};
  return prepare_directory(data_dir);
}

Status put_key(const fs::path& data_dir, const ChosenKey& key, const std::string& suffix) {
  const fs::path own = data_dir / "installation.key";
  if (key.in_place) return {};
  DRIFTD_TRY(const auto text, read_text(key.file));
  if (is_there(own)) {
    DRIFTD_TRY(const auto former, read_text(own));
    if (former == text) return {};
    DRIFTD_CHECK(rename_durably(own, with(own, suffix)));
  }
  DRIFTD_CHECK(write_private(own, text));
  return give_to_owner(data_dir, own);
}

/// Keeps the former store with its log under another name of the same form, so that it can be opened as it was.
Result<fs::path> keep_former(const fs::path& file, const std::string& suffix) {
  fs::path kept;
  for (const char* part : {"-wal", "-shm", ""}) {
    if (!is_there(with(file, part))) continue;
    DRIFTD_CHECK(rename_durably(with(file, part), with(file, suffix + part)));
    kept = with(file, suffix);
  }
  return kept;
}

/// Writes it without a checksum: the next start removes it before it checks any.
Status note_restore(Connection& db, const fs::path& from, Nanos now) {
  return db.statement("INSERT OR REPLACE INTO meta (key, value) VALUES ('restored', ?1)")
      .bind("from " + from.string() + " at " + render_time(now))
      .run();
}

/// Prepares the backup as the new store, under a temporary name.
Status lay_beside(const fs::path& from, const fs::path& fresh, Nanos now) {
  DRIFTD_TRY(const auto source, open_reading(from));
  DRIFTD_CHECK(prepare_file(fresh));
  DRIFTD_TRY(const auto copy, Connection::open(fresh.string(), Connection::Mode::read_write));
  DRIFTD_CHECK(copy_pages(*source, *copy));
  DRIFTD_CHECK(note_restore(*copy, from, now));
  return sync(fresh);
}

/// Refuses the store itself as its backup, and a copy in progress (`.restoring`), which is removed first.
Status check_source(const fs::path& store, const fs::path& from) {
  std::error_code error;
  for (const fs::path& own : {store, with(store, ".restoring")}) {
    if (!fs::equivalent(from, own, error)) continue;
    return fail(Code::invalid, from.string() + " is " + own.string() +
                                   ", which a restore replaces; nothing was changed, name a backup elsewhere");
  }
  return {};
}

using Choose = std::function<Result<ChosenKey>(const Content&)>;

/// Changes nothing until everything is verified and the key is chosen.
Result<Restored> restore_with(const fs::path& data_dir, const fs::path& from, Nanos now, const Choose& choose) {
  const fs::path file = data_dir / "store.db";
  const std::string suffix = ".before-restore-" + stamp_of(now);
  DRIFTD_CHECK(check_source(file, from));
  Restored out;
  auto content = verify(from);
  if (!content) return fail(content.error().code, content.error().message + "; nothing was changed, take another one");
  out.content = std::move(*content);
  DRIFTD_CHECK(prepare(data_dir));
  DRIFTD_TRY(const auto lock, DirectoryLock::take(data_dir, now));
  DRIFTD_CHECK(give_to_owner(data_dir, data_dir / "lock"));
  DRIFTD_TRY(const auto chosen, choose(out.content));
  const Draft draft(with(file, ".restoring"));
  DRIFTD_CHECK(lay_beside(from, draft.file(), now));
  DRIFTD_CHECK(give_to_owner(data_dir, draft.file()));
  DRIFTD_CHECK(put_key(data_dir, chosen, suffix));
  DRIFTD_TRY(out.kept, keep_former(file, suffix));
  DRIFTD_CHECK(rename_durably(draft.file(), file));
  return out;
}

}  // namespace

Result<ConnectionPtr> open_reading(const fs::path& file) {
  std::error_code error;
  if (!is_there(file)) return fail(Code::not_found, "there is no " + file.string());
  if (!fs::is_regular_file(file, error)) {
    const bool folder = fs::is_directory(file, error);
    return fail(Code::invalid, file.string() + (folder ? " is a folder" : " is not a regular file") +
                                   "; expected the file of a store or of a backup, such as " +
                                   (folder ? file / "store.db" : fs::path("/var/lib/driftd/store.db")).string());
  }
  return Connection::open(file.string(), Connection::Mode::read_only);
}

Result<Content> verify(const fs::path& file) {
  DRIFTD_TRY(const auto db, open_reading(file));
  return verify_open(*db, file);
}

Result<std::string> key_ids_in(const fs::path& file) {
  DRIFTD_TRY(const auto db, open_reading(file));
  return read_key_ids(*db);
}

Result<Backup> back_up(const fs::path& data_dir, const fs::path& to, bool with_key, Nanos now) {
  std::error_code error;
  Backup out;
  out.file = fs::is_directory(to, error) ? to / ("driftd-" + stamp_of(now) + ".db") : to;
  DRIFTD_CHECK(check_outside(data_dir, out.file));
  DRIFTD_CHECK(check_target(out.file));
  DRIFTD_TRY(const auto source, open_reading(data_dir / "store.db"));
  if (with_key) DRIFTD_CHECK(read_key(data_dir / "installation.key"));
  const Draft draft(with(out.file, ".new"));
  DRIFTD_CHECK(prepare_file(draft.file()));
  {
    DRIFTD_TRY(const auto copy, Connection::open(draft.file().string(), Connection::Mode::read_write));
    DRIFTD_CHECK(copy_pages(*source, *copy));
  }
  auto content = verify(draft.file());
  if (!content)
    return fail(content.error().code, "the copy is not whole and was thrown away: " + content.error().message);
  out.content = std::move(*content);
  DRIFTD_CHECK(sync(draft.file()));
  DRIFTD_CHECK(rename_durably(draft.file(), out.file));
  if (!with_key) return out;
  out.key_file = with(out.file, ".key");
  DRIFTD_TRY(const auto key, read_text(data_dir / "installation.key"));
  DRIFTD_CHECK(write_private(out.key_file, key));
  return out;
}

Result<Restored> restore(const fs::path& data_dir, const fs::path& from, const fs::path& key, Nanos now) {
  return restore_with(data_dir, from, now,
                      [&](const Content& content) { return choose_key(data_dir, from, key, content); });
}

Result<Restored> restore_without_key(const fs::path& data_dir, const fs::path& from,
                                     const std::optional<GivenKey>& given, Nanos now) {
  return restore_with(data_dir, from, now, [&given](const Content& content) { return check_given(given, content); });
}

}  // namespace driftd::store
