// SPDX-License-Identifier: Apache-2.0
#include "engine/backend_rows.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

#include "core/value/value.hpp"
#include "engine/sources/source_hub.hpp"

namespace driftd::engine {
namespace {

constexpr std::chrono::hours kStateKept{7 * 24};  // how long the state of a removed backend is kept (semantics 1)

}  // namespace

Task<Result<std::vector<core::BackendRow>>> rows_by_age(core::Store& store) {
  DRIFTD_CO_TRY(auto rows, co_await store.backends());
  const auto left = [](const core::BackendRow& row) {
    return row.deleted_ns.value_or(std::numeric_limits<Nanos>::max());
  };
  std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return left(a) > left(b); });
  co_return rows;
}

std::optional<core::BackendRow> extract_row(std::vector<core::BackendRow>& rows, const core::BackendSpec& spec,
                                            Nanos now) {
  const Nanos since = now - std::chrono::duration_cast<std::chrono::nanoseconds>(kStateKept).count();
  for (const bool left : {false, true}) {
    for (const std::string& name : {spec.name, spec.was}) {
      const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
        return !name.empty() && row.name == name && row.deleted_ns.has_value() == left &&
               row.deleted_ns.value_or(now) >= since;
      });
      if (found == rows.end()) continue;
      core::BackendRow row = *found;
      rows.erase(found);
      return row;
    }
  }
  return std::nullopt;
}

const std::string* discovered_by(const core::BackendRow& row) {
  const auto note = row.notes.find(kDiscovererNote);
  return note == row.notes.end() ? nullptr : &note->second;
}

void note_definition(core::BackendRow& row, const core::BackendSpec& spec) {
  row.notes.erase(kUnregisteredNote);
  if (spec.definition.empty()) {
    row.notes.erase(kDefinitionNote);
    row.notes.erase(kRegisteredByNote);
    return;
  }
  const auto known = row.notes.find(kDefinitionNote);
  if (known != row.notes.end() && known->second == spec.definition) return;
  std::uint64_t revision = 0;
  const auto counted = row.notes.find(kRevisionNote);
  if (counted != row.notes.end()) {
    const std::string& text = counted->second;
    std::from_chars(text.data(), text.data() + text.size(), revision);
  }
  row.notes[kDefinitionNote] = spec.definition;
  row.notes[kRegisteredByNote] = spec.defined_at;
  row.notes[kRevisionNote] = std::to_string(revision + 1);
}

std::string definition_of(const core::BackendRow& row) {
  const auto note = row.notes.find(kDefinitionNote);
  return note == row.notes.end() ? std::string() : note->second;
}

std::string stored_definition(const std::vector<core::BackendRow>& rows, const std::string& name) {
  for (const auto& row : rows) {
    if (row.name == name && !row.deleted_ns && row.notes.contains(kDefinitionNote)) return definition_of(row);
  }
  return {};
}

std::string etag_of(const core::BackendRow& row) {
  const auto revision = row.notes.find(kRevisionNote);
  if (!row.notes.contains(kDefinitionNote) || revision == row.notes.end()) return {};
  return row.uid + "-" + revision->second;
}

std::string source_of(const core::BackendSpec& spec) {
  if (!spec.definition.empty()) return "manual";
  return spec.discovered_by.empty() ? "file" : "discovered";
}

std::string registration_cause(const core::BackendSpec& spec) {
  if (!spec.definition.empty()) return "registered by " + spec.defined_at;
  return spec.discovered_by.empty() ? "configuration" : "discovered by " + spec.discovered_by;
}

void restore_from_registration(const std::string& registration, core::BackendSpec& spec) {
  const auto value = core::parse(registration);
  const core::Value* labels = value ? value->find("labels") : nullptr;
  const core::Value* patterns = value ? value->find("patterns") : nullptr;
  const core::Value* endpoint = value ? value->find("endpoint") : nullptr;
  if (labels != nullptr && labels->object() != nullptr) {
    for (const auto& [name, text] : *labels->object())
      spec.labels[name] = text.string() != nullptr ? *text.string() : "";
  }
  if (patterns != nullptr && patterns->array() != nullptr) {
    for (const auto& text : *patterns->array()) spec.patterns.push_back(text.string() != nullptr ? *text.string() : "");
  }
  if (endpoint != nullptr && endpoint->string() != nullptr) spec.endpoint = *endpoint->string();
}

}  // namespace driftd::engine
