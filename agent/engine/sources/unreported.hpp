// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/sources/sources.hpp"

namespace driftd::engine {

/// Words about backends that are not registered yet, the last of each speaker: the next discovery may register them. Of
/// each source 10,000 and 64 MiB have room, 16 of one backend, so that none takes another's. Core thread only.
class Unheard {
 public:
  /// Why it is not kept; empty: it is.
  std::string take(Word word);
  /// What was said of a backend that is registered now.
  std::vector<Word> extract(const std::string& backend);
  /// The source listed all that it says: what it said before that list and not in it is over.
  void listed(const std::string& source);

 private:
  struct Waiting {
    Word word;
    std::uint64_t list = 0;  ///< of its source, in which it was said
  };
  struct Used {
    std::size_t words = 0, bytes = 0;
    std::uint64_t list = 0;
  };
  using Words = std::vector<Waiting>;
  std::string no_room(const Words& waiting, const Word& word) const;
  template <class Over>
  void erase(Words& waiting, Over over);

  std::map<std::string, Words> waiting_;  ///< by backend
  std::map<std::string, Used> used_;      ///< by source
};

}  // namespace driftd::engine
