// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "core/ports/store.hpp"
#include "engine/resource_table.hpp"

namespace driftd::engine {

/// What the agent keeps in memory of each resource of one backend, to settle unchanged records without parsing: 48
/// bytes each (ARCHITECTURE.md, State and cost). Core thread only.
class Index {
 public:
  struct Entry {
    Digest digest;                 ///< digest of the last observation
    std::uint32_t generation = 0;  ///< generation of the rules and the schema that judged it
    std::uint32_t run = 0;         ///< last run that saw it
    /// When the last applied reading was requested, in Tick of the monotonic clock. 0 if another process applied it, or
    /// none did.
    std::uint64_t asked : 44 = 0;
    std::uint64_t kind : 16 = 0;  ///< index in kinds(); put() sets it
    bool present : 1 = false;
    bool open : 1 = false;       ///< has open drifts
    bool unknown : 1 = false;    ///< part of it could not be judged in its last reading
    bool attention : 1 = false;  ///< judge it again in the next reading: it has stale or expiring drifts
  };
  /// 44 bits of ticks last for 55 years of uptime.
  using Tick = std::chrono::duration<std::uint64_t, std::ratio<1, 10'000>>;
  static std::uint64_t ticks(std::chrono::steady_clock::time_point at) {
    return std::chrono::duration_cast<Tick>(
               std::max(at.time_since_epoch(), std::chrono::steady_clock::duration::zero()))
        .count();
  }

  /// Returns the entry as it is kept, valid until the next put() or erase.
  const Entry& put(const core::ResourceId& id, Entry entry);
  /// Returns the entry, or nullptr. The caller must not change `present` and `open`: put() keeps counts of them.
  Entry* find(const core::ResourceId& id);
  void erase(const core::ResourceId& id);
  /// Says whether the schema of a kind is `versioned`. Until then no kind is.
  void set_versioned(const std::string& kind, bool versioned);
  /// Notes the version of the last record of a resource, if its kind is `versioned`. The version changes more often
  /// than what is judged, so the row in the store may have an older one. `entry` is that of `id`.
  void note_version(const core::ResourceId& id, const Entry& entry, const std::string& version) {
    if (versioned_[entry.kind]) versions_[key(id)] = mark(version);
  }
  /// Returns whether that was the version of its last record. Empty if none is noted.
  std::optional<bool> has_version(const core::ResourceId& id, const std::string& version) const {
    const auto found = versions_.find(key(id));
    if (found == versions_.end()) return std::nullopt;
    return found->second == mark(version);
  }
  void forget_versions() { versions_.clear(); }
  void erase_kind(const std::string& kind);
  void erase_absent();          ///< erases entries without a resource and without open drifts
  std::int64_t absent() const;  ///< how many erase_absent() would erase
  /// The latest Entry::asked among the erased entries.
  std::uint64_t forgotten_asked() const { return forgotten_asked_; }
  std::size_t size() const { return entries_.size(); }  ///< with those that are absent
  std::uint16_t kind_number(const std::string& kind);   ///< adds the kind if it is new

  struct Count {
    std::int64_t present = 0;
    std::int64_t missing = 0;      ///< present, but not seen by `run`
    std::int64_t open_unseen = 0;  ///< with open drifts that are not stale yet, not seen by `run`
  };
  Count count(const std::string& kind, std::uint32_t run) const;  ///< zero if the kind has no resources
  /// The same for every kind that has resources, in one pass: a backend may have hundreds of kinds and a million
  /// resources.
  std::map<std::string, Count> counts(std::uint32_t run) const;
  std::int64_t present(const std::string& kind) const;
  std::int64_t present() const;  ///< of all kinds
  std::int64_t open() const;     ///< resources with open drifts
  std::vector<std::string> kinds() const { return kinds_; }

 private:
  /// Names are not kept, so a digest of them is the key.
  static Digest key(const core::ResourceId& id) { return digest(0, {id.kind, id.id}); }
  static std::uint64_t mark(const std::string& version) { return digest(0, {version}).low; }

  struct Hash {
    std::size_t operator()(const Digest& d) const { return static_cast<std::size_t>(d.low); }
  };
  ResourceTable<Entry> entries_;
  boost::unordered_flat_map<Digest, std::uint64_t, Hash> versions_;  ///< of resources of `versioned` kinds
  struct Tally {
    std::int64_t present = 0, open = 0, absent = 0;
  };
  void forget(const Digest& resource, const Entry& entry);
  template <class Which>
  void erase_each(Which which);              ///< erases the entries for which `which` returns true
  void tally(const Entry& entry, int sign);  ///< `sign`: 1 adds it to the counts, -1 takes it off
  static void add(const Entry& entry, std::uint32_t run, Count& to);

  std::vector<std::string> kinds_;
  // One for each of `kinds_`.
  std::vector<Tally> tallies_;
  std::vector<bool> versioned_;
  std::uint64_t forgotten_asked_ = 0;
};

}  // namespace driftd::engine
