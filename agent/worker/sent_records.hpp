// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "core/resource.hpp"

namespace driftd::worker {

/// Which records of an instance went to the agent, each by a digest of what the plugin gave. If a refresh brings the
/// same again, the agent needs its digest only, so it is neither parsed nor redacted nor sent. Takes about 60 bytes a
/// resource, of at most twice as many as the largest refresh had. Part of a LoadedInstance; any thread.
class SentRecords {
 public:
  /// A refresh begins. `seed` is that of the installation; `digests`: the agent accepts digests, but for the resources
  /// in `whole`.
  void begin(std::uint64_t seed, bool digests, std::vector<core::ResourceId> whole);

  /// What the plugin gave of one record.
  struct Raw {
    std::uint64_t resource = 0;  ///< of kind and id
    Digest digest;               ///< of all that is judged: also body, identity, what is sensitive
  };
  /// Returns nothing for a record that always goes as a whole: a tombstone, one of another backend, one with a NULL
  /// where there should be a text, and one of which something is unread, because each list tells why.
  std::optional<Raw> raw_of(const driftd_record& record, const std::string& backend) const;
  /// Returns the digest under which the agent knows this record, if it may be left out of this refresh. The first
  /// record of each kind never is: its metadata says whether somebody applied the state.
  std::optional<Digest> known(const driftd_record& record, const Raw& raw);
  void sent(const Raw& raw, const Digest& digest);  ///< as a whole
  void forget(const Raw& raw);                      ///< it was not sent as the plugin gave it
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Digest raw, digest;
  };
  std::uint64_t seed_ = 0;
  std::mutex mutex_;
  boost::unordered_flat_map<std::uint64_t, Entry> entries_;
  std::set<std::string, std::less<>> begun_;
  std::set<core::ResourceId> whole_;
  bool digests_ = false;
  std::size_t seen_ = 0, largest_ = 0;  ///< records of this refresh; of the largest one
};

}  // namespace driftd::worker
