// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/declarations.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxDeclared = 250'000;

core::DeclarationWrite withdrawal(const std::string& target, const core::ResourceId& id,
                                  const std::string& source_uid) {
  core::DeclarationWrite out;
  out.target = target;
  out.declaration.source_uid = source_uid;
  out.declaration.id = id;
  out.withdrawn = true;
  return out;
}

}  // namespace

void DeclarationSet::load(const std::vector<core::DeclaredEntry>& known) {
  known_.clear();
  for (const auto& entry : known) known_[{entry.target, entry.id}] = {entry.digest, 0, true};
}

bool DeclarationSet::has_room(const core::Observation& record) const {
  return known_.size() < kMaxDeclared || record.tombstone || known_.contains({record.backend, record.id});
}

std::string DeclarationSet::no_room() {
  return "budget: a source declares at most " + std::to_string(kMaxDeclared) +
         " resources of other backends: what is more of them is left out, and what is known stays";
}

std::optional<core::DeclarationWrite> DeclarationSet::update(const core::Observation& record,
                                                             const std::string& source_uid, std::uint32_t run) {
  if (record.tombstone) {
    if (!known_.contains({record.backend, record.id})) return std::nullopt;
    return withdrawal(record.backend, record.id, source_uid);
  }
  Known& known = known_[{record.backend, record.id}];
  known.run = run;
  if (known.stored && known.digest == record.digest) return std::nullopt;
  core::DeclarationWrite out;
  out.target = record.backend;
  out.declaration.source_uid = source_uid;
  out.declaration.id = record.id;
  out.declaration.body = record.body;
  out.declaration.metadata = record.metadata;
  out.declaration.digest = record.digest;
  return out;
}

std::vector<core::DeclarationWrite> DeclarationSet::missing(const std::string& target, const std::string& kind,
                                                            const std::string& source_uid, std::uint32_t run) const {
  std::vector<core::DeclarationWrite> out;
  for (auto at = known_.lower_bound({target, {kind, ""}}); at != known_.end(); ++at) {
    const auto& [key, known] = *at;
    if (key.first != target || key.second.kind != kind) break;
    if (known.stored && known.run != run) out.push_back(withdrawal(target, key.second, source_uid));
  }
  return out;
}

std::vector<core::DeclarationWrite> DeclarationSet::unmentioned(
    const std::set<std::pair<std::string, std::string>>& mentioned, const std::string& source_uid) const {
  std::vector<core::DeclarationWrite> out;
  for (const auto& [key, known] : known_) {
    if (known.stored && !mentioned.contains({key.first, key.second.kind}))
      out.push_back(withdrawal(key.first, key.second, source_uid));
  }
  return out;
}

std::set<std::string> DeclarationSet::adopt(const std::vector<core::DeclarationWrite>& written) {
  std::set<std::string> out;
  for (const auto& write : written) {
    out.insert(write.target);
    const Key key{write.target, write.declaration.id};
    if (write.withdrawn) {
      known_.erase(key);
      continue;
    }
    Known& known = known_[key];
    known.digest = write.declaration.digest;
    known.stored = true;
  }
  return out;
}

}  // namespace driftd::engine
