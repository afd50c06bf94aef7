// SPDX-License-Identifier: Apache-2.0
#include "worker/sent_records.hpp"

#include <algorithm>

#include "ipc/limits.hpp"
#include "worker/abi_input.hpp"

namespace driftd::worker {
namespace {

constexpr std::size_t kSpare = 1'000;

bool is_text(driftd_str s) { return s.data != nullptr || s.len == 0; }

}  // namespace

void SentRecords::begin(std::uint64_t seed, bool digests, std::vector<core::ResourceId> whole) {
  const std::lock_guard lock(mutex_);
  largest_ = std::max(largest_, seen_);
  if (entries_.size() > 2 * largest_ + kSpare) {  // most of them are of resources that are gone
    entries_.clear();
    largest_ = 0;
  }
  seed_ = seed;
  digests_ = digests;
  whole_ = {std::make_move_iterator(whole.begin()), std::make_move_iterator(whole.end())};
  begun_.clear();
  seen_ = 0;
}

std::optional<SentRecords::Raw> SentRecords::raw_of(const driftd_record& record, const std::string& backend) const {
  const bool other = record.backend.len != 0 && view(record.backend) != backend;
  const bool texts = is_text(record.kind) && is_text(record.id) && is_text(record.body) &&
                     is_text(record.external_name) && is_text(record.backend);
  const bool lists = record.sensitive_count <= ipc::kMaxListItems &&
                     (record.sensitive != nullptr || record.sensitive_count == 0) && record.unread_count == 0;
  if (other || !texts || !lists || record.tombstone != 0 || record.body.len > ipc::kMaxBody) return std::nullopt;
  const Digest resource = digest(seed_, {view(record.kind), view(record.id)});
  DigestBuilder all(seed_);
  for (const auto& text : {record.kind, record.id, record.external_name, record.body}) all.add(view(text));
  all.add(record.schema_revision);
  all.add(record.sensitive_count);
  for (std::uint64_t i = 0; i < record.sensitive_count; ++i) {
    if (!is_text(record.sensitive[i])) return std::nullopt;
    all.add(view(record.sensitive[i]));
  }
  return Raw{resource.low, all.finish()};
}

std::optional<Digest> SentRecords::known(const driftd_record& record, const Raw& raw) {
  const std::lock_guard lock(mutex_);
  ++seen_;
  if (!digests_) return std::nullopt;
  if (!begun_.contains(view(record.kind))) {
    begun_.emplace(view(record.kind));
    return std::nullopt;
  }
  if (!whole_.empty() && whole_.contains({std::string(view(record.kind)), std::string(view(record.id))}))
    return std::nullopt;
  const auto found = entries_.find(raw.resource);
  return found != entries_.end() && found->second.raw == raw.digest ? std::optional(found->second.digest)
                                                                    : std::nullopt;
}

void SentRecords::sent(const Raw& raw, const Digest& digest) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(raw.resource, Entry{raw.digest, digest});
}

void SentRecords::forget(const Raw& raw) {
  const std::lock_guard lock(mutex_);
  entries_.erase(raw.resource);
}

}  // namespace driftd::worker
