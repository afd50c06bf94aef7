// SPDX-License-Identifier: Apache-2.0
#include "engine/schema_notes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace driftd::engine {
namespace {

const std::string kSchemaNote = "schema:";
constexpr std::size_t kMaxOfKind = 16;
constexpr std::size_t kMaxSchemaBytes = 8u << 20;

std::string note_key(const Revision& one) { return kSchemaNote + one.first + ":" + std::to_string(one.second); }

std::optional<Revision> parse_revision(const std::string& note) {
  if (!note.starts_with(kSchemaNote)) return std::nullopt;
  const std::size_t colon = note.rfind(':');  // a kind may contain a colon, too
  Revision out{note.substr(kSchemaNote.size(), std::max(colon, kSchemaNote.size()) - kSchemaNote.size()), 0};
  (void)std::from_chars(note.data() + colon + 1, note.data() + note.size(), out.second);
  return out;
}

Notes current_schemas(const core::ProviderInfo& info) {
  Notes out;
  for (const auto& [kind, schema] : info.schemas) {
    const auto text = info.schema_texts.find(kind);
    if (text != info.schema_texts.end()) out[note_key({kind, schema->revision()})] = text->second;
  }
  return out;
}

}  // namespace

Former former_schemas(const Notes& notes) {
  Former out;
  for (const auto& [note, text] : notes) {
    if (!parse_revision(note) || text.empty()) continue;
    const auto schema = core::KindSchema::parse(text);
    if (schema) out[(*schema)->kind()][(*schema)->revision()] = *schema;
  }
  return out;
}

bool has_former(const Notes& notes, const core::ProviderInfo& info) {
  const Notes now = current_schemas(info);
  return std::ranges::any_of(notes,
                             [&](const auto& one) { return parse_revision(one.first) && !now.contains(one.first); });
}

Notes with_schemas(const Notes& notes, const core::ProviderInfo& info, const std::set<Revision>& stored) {
  const Notes now = current_schemas(info);
  Notes out;
  std::vector<Revision> former;
  for (const auto& [note, text] : notes) {
    const auto one = parse_revision(note);
    if (!one) out[note] = text;
    if (one && !now.contains(note) && stored.contains(*one)) former.push_back(*one);
  }
  std::ranges::sort(former, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::map<std::string, std::size_t> of_kind;
  std::size_t bytes = 0;
  for (const auto& one : former) {
    const std::string note = note_key(one);
    const std::string& text = notes.at(note);
    const bool room = of_kind[one.first] < kMaxOfKind && bytes + text.size() <= kMaxSchemaBytes;
    out[note] = room ? text : std::string();
    if (!room) continue;
    bytes += text.size();
    of_kind[one.first] += text.empty() ? 0 : 1;
  }
  out.insert(now.begin(), now.end());
  return out;
}

std::string lost_schemas_reason(const Notes& notes, const std::string& kind) {
  const std::string front = kSchemaNote + kind + ":";
  std::size_t lost = 0;
  for (auto at = notes.lower_bound(front); at != notes.end() && at->first.starts_with(front); ++at) {
    lost += at->second.empty() && parse_revision(at->first)->first == kind ? 1 : 0;
  }
  if (lost == 0) return {};
  return "budget: " + std::to_string(lost) +
         " earlier schema revisions under which something is stored were given up (" + std::to_string(kMaxOfKind) +
         " of a kind and " + std::to_string(kMaxSchemaBytes >> 20) +
         " MiB of a backend are kept): that is read as if its schema had not changed";
}

}  // namespace driftd::engine
