// SPDX-License-Identifier: Apache-2.0
#include "app/record.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include "core/value/value.hpp"
#include "engine/engine.hpp"
#include "store/files.hpp"

namespace driftd::app {
namespace {

constexpr std::size_t kPage = 512;  // resources that are read or committed together
// Maximum nesting of a body that is written as JSON inside its line. A deeper one is written as text: the two levels of
// the line around it would exceed the limit of the parser.
constexpr int kDeepest = 250;
const char* const kFormat = "driftd-record/2";
const char* const kFirstFormat = "driftd-record/1";  // one JSON document; it can still be read

std::string text(const core::Value& object, const char* member) {
  const core::Value* value = object.find(member);
  return value != nullptr && value->string() != nullptr ? *value->string() : std::string();
}

/// Writes a private file line by line. The file appears under its name only when it is complete.
class RecordFile {
 public:
  explicit RecordFile(std::string file) : file_(std::move(file)), fresh_(file_ + ".new") {
    ::unlink(fresh_.c_str());  // left by a run that was killed
    fd_ = ::open(fresh_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0) failed_ = fail(Code::denied, file_ + ": cannot be written: " + std::strerror(errno));
  }
  ~RecordFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(fresh_.c_str());
  }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void line(core::Value::Object value) {
    buffer_ += core::render(core::Value(std::move(value))) + "\n";
    if (buffer_.size() > (1u << 20)) flush();
  }
  Status keep() {
    flush();
    if (failed_ && ::fsync(fd_) != 0)
      failed_ = fail(Code::unavailable, file_ + ": was not written whole: " + std::strerror(errno));
    DRIFTD_CHECK(failed_);
    if (::rename(fresh_.c_str(), file_.c_str()) != 0) {
      return fail(Code::denied, file_ + ": cannot be replaced: " + std::strerror(errno));
    }
    ::close(std::exchange(fd_, -1));
    return {};
  }

 private:
  void flush() {
    std::string_view left = buffer_;
    while (failed_ && !left.empty()) {
      const ssize_t wrote = ::write(fd_, left.data(), left.size());
      if (wrote < 0 && errno != EINTR)
        failed_ = fail(Code::unavailable, file_ + ": was not written whole: " + std::strerror(errno));
      if (wrote > 0) left.remove_prefix(static_cast<std::size_t>(wrote));
    }
    buffer_.clear();
  }

  std::string file_, fresh_, buffer_;
  int fd_ = -1;
  Status failed_;
};

/// Parses one resource of a record. Digests of a record that was made before a key rotation are brought up to `keys`.
Result<core::ResourceWrite> parse_baseline(const core::Value& entry, const core::RedactionKeys& keys,
                                           std::vector<std::string>& kinds) {
  core::ResourceWrite out;
  out.next.id = {text(entry, "kind"), text(entry, "id")};
  const core::Value* found = entry.find("body");
  core::Value body = found == nullptr ? core::Value() : *found;
  if (const std::string deep = text(entry, "body_text"); !deep.empty()) {
    DRIFTD_TRY(body, core::parse(deep));
  }
  DRIFTD_TRY([[maybe_unused]] const bool of_before, core::rewrap(body, keys));
  out.next.baseline = core::render(body);
  out.next.observed = out.next.baseline;
  out.next.external_name = text(entry, "external_name");
  out.next.observed_external_name = out.next.external_name;
  const std::string revision = text(entry, "schema_revision");
  // stays 1 if it is not a number
  (void)std::from_chars(revision.data(), revision.data() + revision.size(), out.next.schema_revision);
  if (std::find(kinds.begin(), kinds.end(), out.next.id.kind) == kinds.end()) kinds.push_back(out.next.id.kind);
  return out;
}

core::BackendRow parse_backend(const core::BackendSpec& spec, const core::Value& backend) {
  core::BackendRow out;
  out.uid = to_hex(sha256(spec.name)).substr(0, 16);
  out.name = spec.name;
  out.type = engine::canonical_type(spec.provider);
  out.provider = spec.provider;
  out.registration = spec.registration_json;
  out.system_identity = text(backend, "system_identity");
  if (const core::Value* notes = backend.find("notes"); notes != nullptr && notes->object() != nullptr) {
    for (const auto& [name, value] : *notes->object()) {
      if (value.string() != nullptr) out.notes[name] = *value.string();
    }
  }
  return out;
}

/// Fills the store backend by backend. Skips backends that are not configured here.
class Loader {
 public:
  Loader(const config::Config& config, store::SqliteStore& store)
      : config_(config),
        store_(store),
        keys_(store.key().steps()) {}

  Task<Status> backend(core::Value value) {
    DRIFTD_CO_CHECK(co_await commit());
    page_ = {};
    const auto spec = std::find_if(config_.backends.begin(), config_.backends.end(),
                                   [&](const auto& one) { return one.name == text(value, "name"); });
    known_ = spec != config_.backends.end();
    if (!known_) co_return Status{};
    page_.backend = parse_backend(*spec, value);
    page_.backend_uid = page_.backend->uid;
    for (const auto& kind : list(value, "kinds")) {
      if (kind.string() != nullptr) page_.established.push_back(*kind.string());
    }
    co_return Status{};
  }
  Task<Status> resource(core::Value value) {
    ++resources_;
    if (!known_) co_return Status{};
    DRIFTD_CO_TRY(auto write, parse_baseline(value, keys_, page_.established));
    page_.writes.push_back(std::move(write));
    if (page_.writes.size() >= kPage) DRIFTD_CO_CHECK(co_await commit());
    co_return Status{};
  }
  Task<Status> commit() {
    if (!known_ || (page_.writes.empty() && !page_.backend)) co_return Status{};
    core::PageCommit page = std::exchange(page_, {});
    page_.backend_uid = page.backend_uid;
    const auto committed = co_await store_.commit(std::move(page));
    if (!committed) co_return fail(committed.error());
    co_return Status{};
  }
  std::size_t resources() const { return resources_; }

  static core::Value::Array list(const core::Value& value, const char* member) {
    const core::Value* found = value.find(member);
    return found != nullptr && found->array() != nullptr ? *found->array() : core::Value::Array{};
  }

 private:
  const config::Config& config_;
  store::SqliteStore& store_;
  const core::RedactionKeys keys_;
  core::PageCommit page_;
  bool known_ = false;
  std::size_t resources_ = 0;
};

Status check_head(const std::string& file, const core::Value& head, const core::RedactionKey& key) {
  const std::string format = text(head, "format");
  if (format != kFormat && format != kFirstFormat) {
    return fail(Code::corrupt, file + ": expected format " + std::string(kFormat) + ", found '" + format + "'");
  }
  const std::string made_with = text(head, "key");
  const bool is_layer =
      std::any_of(key.layers.begin(), key.layers.end(), [&](const auto& layer) { return layer.id == made_with; });
  if (made_with == key.id || is_layer) return {};
  return fail(Code::conflict,
              file + " was recorded under another installation key, or after a rotation that this one does not know (" +
                  made_with + ", here " + key.newest_id() + "): its credentials cannot be compared. Put " + file +
                  ".key or the recording agent's installation.key in place, or record it again");
}

/// Loads a record of revision 1, which is a single line.
Task<Status> load_document(core::Value record, Loader& loader) {
  for (const auto& backend : Loader::list(record, "backends")) {
    DRIFTD_CO_CHECK(co_await loader.backend(backend));
    for (const auto& entry : Loader::list(backend, "resources")) DRIFTD_CO_CHECK(co_await loader.resource(entry));
  }
  co_return co_await loader.commit();
}

/// Loads one line. Sets `done` if it is the last one and the number of resources before it is right.
Task<Status> load_line(core::Value line, Loader& loader, bool& done) {
  if (const core::Value* backend = line.find("backend")) {
    DRIFTD_CO_CHECK(co_await loader.backend(*backend));
  } else if (const core::Value* resource = line.find("resource")) {
    DRIFTD_CO_CHECK(co_await loader.resource(*resource));
  } else if (const core::Value* end = line.find("end")) {
    const core::Value* count = end->find("resources");
    done =
        count != nullptr && count->number() != nullptr && count->number()->token == std::to_string(loader.resources());
  }
  co_return Status{};
}

core::Value::Object backend_json(const core::BackendRow& row) {
  core::Value::Array kinds;
  core::Value::Object notes;
  for (const auto& [kind, yes] : row.established) {
    if (yes) kinds.push_back(core::Value(kind));
  }
  for (const auto& [name, value] : row.notes) {
    if (name == "serial" || name == "lineage") notes[name] = core::Value(value);
  }
  return {{"name", core::Value(row.name)},
          {"system_identity", core::Value(row.system_identity)},
          {"kinds", core::Value(std::move(kinds))},
          {"notes", core::Value(std::move(notes))}};
}

/// Returns the nesting depth of a valid JSON text.
int nesting_depth(std::string_view json) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == '}' || c == ']'))
      --depth;
  }
  return deepest;
}

Result<core::Value> resource_json(const core::StoredResource& resource) {
  core::Value::Object out{{"kind", core::Value(resource.id.kind)},
                          {"id", core::Value(resource.id.id)},
                          {"external_name", core::Value(resource.observed_external_name)},
                          {"schema_revision", core::Value(std::to_string(resource.schema_revision))}};
  if (nesting_depth(*resource.observed) > kDeepest) {
    out["body_text"] = core::Value(*resource.observed);
  } else {
    DRIFTD_TRY(out["body"], core::parse(*resource.observed));
  }
  return core::Value(std::move(out));
}

/// Writes the present resources of one backend, page by page. Returns how many there were.
Task<Result<std::size_t>> save_backend(const core::BackendRow& row, store::SqliteStore& store, RecordFile& file) {
  file.line({{"backend", core::Value(backend_json(row))}});
  DRIFTD_CO_TRY(auto index, co_await store.index(row.uid));
  const auto by_id = [](const auto& a, const auto& b) {
    return std::tie(a.id.kind, a.id.id) < std::tie(b.id.kind, b.id.id);
  };
  std::sort(index.begin(), index.end(), by_id);
  std::size_t written = 0;
  for (std::size_t at = 0; at < index.size(); at += kPage) {
    std::vector<core::ResourceId> ids;
    for (std::size_t i = at; i < std::min(at + kPage, index.size()); ++i) ids.push_back(index[i].id);
    DRIFTD_CO_TRY(const auto rows, co_await store.load(row.uid, std::move(ids)));
    for (const auto& one : rows) {
      if (!one.observed) continue;
      DRIFTD_CO_TRY(auto entry, resource_json(one));
      file.line({{"resource", std::move(entry)}});
      ++written;
    }
  }
  co_return written;
}

/// Returns what core::parse() says of one line of the file, with the place in the file instead of that in the line.
std::string render_parse_error(const std::string& file, std::size_t line, const std::string& message) {
  constexpr std::string_view kInLine = "JSON 1:";
  const std::string where = file + ":" + std::to_string(line) + ":";
  return message.starts_with(kInLine) ? where + message.substr(kInLine.size()) : where + " " + message;
}

}  // namespace

Task<Status> save_record(std::string file, store::SqliteStore& store) {
  RecordFile out(file);
  out.line({{"format", core::Value(kFormat)}, {"key", core::Value(store.key().store.newest_id())}});
  DRIFTD_CO_TRY(const auto rows, co_await store.backends());
  std::size_t resources = 0;
  for (const auto& row : rows) {
    DRIFTD_CO_TRY(const auto written, co_await save_backend(row, store, out));
    resources += written;
  }
  core::Value::Object end{{"resources", core::Value(core::Value::Number{std::to_string(resources)})}};
  out.line({{"end", core::Value(std::move(end))}});
  co_return out.keep();
}

Status check_record(const std::string& file, const std::string& data_dir) {
  DRIFTD_CHECK(store::check_outside(data_dir, file));
  std::error_code error;
  const auto there = std::filesystem::status(file, error);
  if (there.type() == std::filesystem::file_type::not_found) return {};
  const auto refused = [&file](const std::string& why) {
    return fail(Code::invalid,
                file + " " + why + ", and a record would replace it; name another file, or remove this one");
  };
  if (there.type() != std::filesystem::file_type::regular) return refused("is not a regular file");
  std::ifstream in(file, std::ios::binary);
  std::string head(4096, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  if (head.empty() || head.find("driftd-record/") != std::string::npos)
    return {};  // an empty file is allowed, as mktemp makes it
  return refused("is not a record");
}

Task<Status> load_record(std::string file, const config::Config& config, store::SqliteStore& store) {
  std::ifstream in(file, std::ios::binary);
  if (!in) co_return fail(Code::not_found, file + ": cannot be read; `driftd once --record " + file + "` makes it");
  Loader loader(config, store);
  bool done = false;
  std::size_t number = 0;
  for (std::string content; std::getline(in, content);) {
    const std::string where = file + ":" + std::to_string(++number) + ": ";
    auto line = core::parse(content);
    if (!line) co_return fail(Code::corrupt, render_parse_error(file, number, line.error().message));
    if (done) co_return fail(Code::corrupt, where + "expected nothing behind the end of the record");
    if (number == 1) {
      DRIFTD_CO_CHECK(check_head(file, *line, store.key().store));
      done = text(*line, "format") == kFirstFormat;
      if (done) DRIFTD_CO_CHECK(co_await load_document(std::move(*line), loader));
      continue;
    }
    const Status loaded = co_await load_line(std::move(*line), loader, done);
    if (!loaded) co_return fail(loaded.error().code, where + loaded.error().message);
  }
  if (done) co_return co_await loader.commit();
  co_return fail(Code::corrupt, file + ": ends after line " + std::to_string(number) +
                                    " without its last line, or some are missing: it was cut; record it again");
}

}  // namespace driftd::app
