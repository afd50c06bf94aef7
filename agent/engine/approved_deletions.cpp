// SPDX-License-Identifier: Apache-2.0
#include "engine/approved_deletions.hpp"

#include <algorithm>
#include <utility>

#include "core/judge/judge.hpp"

namespace driftd::engine {
namespace {

const std::string kApprovalNote = "accept:scope/";
const std::string kDigest = "sha256";

/// Returns the digest of all names in a core::gone_value(). Empty if the value shows all names.
std::string digest_in(const core::Value* gone) {
  const core::Value* digest = gone != nullptr ? gone->find(kDigest) : nullptr;
  return digest != nullptr && digest->string() != nullptr ? *digest->string() : std::string();
}

const core::Value* names_in(const core::Value& gone) {
  const core::Value* names = gone.find("names");
  return names != nullptr && names->array() != nullptr ? names : nullptr;
}

/// `gone` is a core::gone_value().
std::string approval_note(const std::string& by, const core::Value& gone) {
  core::Value::Object out{{"by", core::Value(by)}};
  const std::string digest = digest_in(&gone);
  if (digest.empty()) {
    out.emplace("names", *names_in(gone));
  } else {
    out.emplace(kDigest, core::Value(digest));
  }
  return core::render(core::Value(std::move(out)));
}

}  // namespace

void ApprovedDeletions::load(const Notes& notes) {
  std::map<std::string, Approval> now;
  for (auto at = notes.lower_bound(kApprovalNote); at != notes.end() && at->first.starts_with(kApprovalNote); ++at) {
    const auto value = core::parse(at->second);
    const core::Value* by = value ? value->find("by") : nullptr;
    if (by == nullptr || by->string() == nullptr) continue;
    const std::string kind = at->first.substr(kApprovalNote.size());
    Approval one;
    one.by = *by->string();
    one.sha256 = digest_in(&*value);
    const core::Value* names = names_in(*value);
    if (!one.sha256.empty()) {
      one.digested = known(kind, one.sha256);
    } else if (names != nullptr) {
      for (const auto& name : *names->array()) {
        if (name.string() != nullptr) one.names.insert(*name.string());
      }
    } else {
      continue;
    }
    now.emplace(kind, std::move(one));
  }
  approvals_ = std::move(now);
  remaining_.clear();
}

void ApprovedDeletions::approve(Notes& notes, const std::string& kind, const std::string& by,
                                const std::string& shown) {
  const auto value = core::parse(shown);
  if (!value || names_in(*value) == nullptr) return;
  notes[kApprovalNote + kind] = approval_note(by, *value);
}

void ApprovedDeletions::ask(const std::string& kind, const std::string& observed,
                            const std::vector<std::string>& names) {
  const auto value = core::parse(observed);
  std::string sha256 = digest_in(value ? value->find("gone") : nullptr);
  if (sha256.empty()) {
    questions_.erase(kind);
  } else if (questions_[kind].sha256 != sha256) {
    questions_[kind] = {std::move(sha256), digested(names)};
  }
}

bool ApprovedDeletions::covers(const Approval& approved, const std::string& name) const {
  if (approved.sha256.empty()) return approved.names.contains(name);
  return approved.digested != nullptr && approved.digested->contains(digest(seed_, {name}));
}

const std::string* ApprovedDeletions::approved_by(const core::ResourceId& id) const {
  const auto found = approvals_.find(id.kind);
  return found != approvals_.end() && covers(found->second, id.id) ? &found->second.by : nullptr;
}

bool ApprovedDeletions::by_digest(const std::string& kind) const {
  const auto found = approvals_.find(kind);
  return found != approvals_.end() && !found->second.sha256.empty();
}

bool ApprovedDeletions::names_unknown(const std::string& kind) const {
  return by_digest(kind) && approvals_.at(kind).digested == nullptr;
}

std::shared_ptr<const ApprovedDeletions::Names> ApprovedDeletions::digested(
    const std::vector<std::string>& names) const {
  auto out = std::make_shared<Names>();
  out->reserve(names.size());
  for (const auto& name : names) out->insert(digest(seed_, {name}));
  return out;
}

std::shared_ptr<const ApprovedDeletions::Names> ApprovedDeletions::known(const std::string& kind,
                                                                         const std::string& sha256) const {
  const auto before = approvals_.find(kind);
  if (before != approvals_.end() && before->second.sha256 == sha256 && before->second.digested)
    return before->second.digested;
  for (const auto* from : {&questions_, &remaining_}) {
    const auto found = from->find(kind);
    if (found != from->end() && found->second.sha256 == sha256) return found->second.names;
  }
  return nullptr;
}

void ApprovedDeletions::match_names(const std::string& kind, std::vector<std::string> missing) {
  if (!names_unknown(kind)) return;
  Approval& approved = approvals_.at(kind);
  const core::Value gone = core::gone_value(missing);
  if (digest_in(&gone) == approved.sha256) approved.digested = digested(missing);
}

std::optional<ApprovedDeletions::Notes> ApprovedDeletions::without_finished(
    const Notes& notes, const std::string& kind, const std::vector<std::string>& candidates,
    const std::function<bool(const std::string&)>& missing) {
  const auto found = approvals_.find(kind);
  if (found == approvals_.end()) return std::nullopt;
  const Approval& approved = found->second;
  const bool names = approved.sha256.empty();
  const std::size_t before = names ? approved.names.size() : approved.digested ? approved.digested->size() : 0;
  std::vector<std::string> left;
  const auto add = [&](const std::string& name) {
    if (covers(approved, name) && missing(name)) left.push_back(name);
  };
  if (names) std::for_each(approved.names.begin(), approved.names.end(), add);
  if (!names) std::for_each(candidates.begin(), candidates.end(), add);
  if (left.size() == before && before > 0) return std::nullopt;
  Notes out = notes;
  out.erase(kApprovalNote + kind);
  if (left.empty()) return out;
  const core::Value gone = core::gone_value(left, names ? core::GoneNames::all : core::GoneNames::first);
  out[kApprovalNote + kind] = approval_note(approved.by, gone);
  if (std::string sha256 = digest_in(&gone); !sha256.empty()) remaining_[kind] = {std::move(sha256), digested(left)};
  return out;
}

}  // namespace driftd::engine
