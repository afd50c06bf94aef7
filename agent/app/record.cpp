// SPDX-License-Identifier: Apache-2.0
#include "app/record.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "core/value.hpp"
#include "engine/engine.hpp"

namespace driftd::app {
namespace {

constexpr int kMost = 1'000'000'000;
const char* const kFormat = "driftd-record/1";

std::string text(const core::Value& object, const char* member) {
  const core::Value* value = object.find(member);
  return value != nullptr && value->string() != nullptr ? *value->string() : std::string();
}

Status write_private(const std::string& file, const std::string& content) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return fail(Code::denied, file + ": cannot be written");
  std::size_t at = 0;
  while (at < content.size()) {
    const ssize_t wrote = ::write(fd, content.data() + at, content.size() - at);
    if (wrote < 0 && errno != EINTR) break;
    at += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
  }
  const bool whole = at == content.size() && ::fsync(fd) == 0;
  ::close(fd);
  if (!whole) return fail(Code::unavailable, file + ": was not written whole");
  return {};
}

Result<core::Value> read_record(const std::string& file, const std::string& key_id) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(Code::not_found, file + ": cannot be read; `driftd once --record " + file + "` makes it");
  std::ostringstream content;
  content << in.rdbuf();
  auto parsed = core::parse(content.str());
  if (!parsed) return fail(Code::corrupt, file + ": " + parsed.error().message);
  if (text(*parsed, "format") != kFormat) {
    return fail(Code::corrupt, file + ": expected format " + std::string(kFormat) + ", found '" + text(*parsed, "format") + "'");
  }
  if (text(*parsed, "key") != key_id) {
    return fail(Code::conflict, file + " was recorded under another installation key (" + text(*parsed, "key") +
                                    ", here " + key_id + "): its credentials cannot be compared. Put " + file + ".key or the recording agent's installation.key in place, "
                                    "or record it anew");
  }
  return parsed;
}

core::ResourceWrite baseline_of(const core::Value& entry, std::vector<std::string>& kinds) {
  core::ResourceWrite out;
  out.next.id = {text(entry, "kind"), text(entry, "id")};
  const core::Value* body = entry.find("body");
  out.next.baseline = core::render(body == nullptr ? core::Value() : *body);
  out.next.observed = out.next.baseline;
  out.next.external_name = text(entry, "external_name");
  out.next.observed_external_name = out.next.external_name;
  const std::string revision = text(entry, "schema_revision");
  out.next.schema_revision = revision.empty() ? 1u : static_cast<std::uint32_t>(std::stoul(revision));
  if (std::find(kinds.begin(), kinds.end(), out.next.id.kind) == kinds.end()) kinds.push_back(out.next.id.kind);
  return out;
}

core::BackendRow row_of(const core::BackendSpec& spec, const core::Value& backend) {
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

Task<Status> load_backend(const core::BackendSpec& spec, const core::Value& backend, store::SqliteStore& store) {
  core::PageCommit page;
  page.backend = row_of(spec, backend);
  page.backend_uid = page.backend->uid;
  if (const core::Value* kinds = backend.find("kinds"); kinds != nullptr && kinds->array() != nullptr) {
    for (const auto& kind : *kinds->array()) {
      if (kind.string() != nullptr) page.established.push_back(*kind.string());
    }
  }
  const core::Value* resources = backend.find("resources");
  if (resources != nullptr && resources->array() != nullptr) {
    for (const auto& entry : *resources->array()) page.writes.push_back(baseline_of(entry, page.established));
  }
  const auto committed = co_await store.commit(std::move(page));
  if (!committed) co_return fail(committed.error());
  co_return Status{};
}

}  // namespace

Task<Status> save_record(std::string file, store::SqliteStore& store) {
  DRIFTD_CO_TRY(const auto rows, co_await store.backends());
  DRIFTD_CO_TRY(const auto resources, co_await store.resources(std::string(), std::string(), kMost));
  core::Value::Array backends;
  for (const auto& row : rows) {
    core::Value::Array kinds, bodies;
    core::Value::Object notes;
    for (const auto& [kind, yes] : row.established) {
      if (yes) kinds.push_back(core::Value(kind));
    }
    for (const auto& [name, value] : row.notes) {
      if (name == "serial" || name == "lineage") notes[name] = core::Value(value);
    }
    for (const auto& one : resources) {
      if (one.backend != row.name || !one.resource.observed) continue;
      DRIFTD_CO_TRY(core::Value body, core::parse(*one.resource.observed));
      core::Value::Object entry;
      entry["kind"] = core::Value(one.resource.id.kind);
      entry["id"] = core::Value(one.resource.id.id);
      entry["external_name"] = core::Value(one.resource.observed_external_name);
      entry["schema_revision"] = core::Value(std::to_string(one.resource.schema_revision));
      entry["body"] = std::move(body);
      bodies.emplace_back(std::move(entry));
    }
    core::Value::Object backend;
    backend["name"] = core::Value(row.name);
    backend["system_identity"] = core::Value(row.system_identity);
    backend["kinds"] = core::Value(std::move(kinds));
    backend["notes"] = core::Value(std::move(notes));
    backend["resources"] = core::Value(std::move(bodies));
    backends.emplace_back(std::move(backend));
  }
  core::Value::Object record;
  record["format"] = core::Value(kFormat);
  record["key"] = core::Value(store.key().store.id);
  record["backends"] = core::Value(std::move(backends));
  co_return write_private(file, core::render(core::Value(std::move(record))) + "\n");
}

Task<Status> load_record(std::string file, const config::Config& config, store::SqliteStore& store) {
  DRIFTD_CO_TRY(const core::Value record, read_record(file, store.key().store.id));
  const core::Value* backends = record.find("backends");
  if (backends == nullptr || backends->array() == nullptr) co_return fail(Code::corrupt, file + ": has no backends");
  for (const auto& backend : *backends->array()) {
    for (const auto& spec : config.backends) {
      if (spec.name == text(backend, "name")) DRIFTD_CO_CHECK(co_await load_backend(spec, backend, store));
    }
  }
  co_return Status{};
}

}  // namespace driftd::app
