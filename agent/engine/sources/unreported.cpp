// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/unreported.hpp"

#include <algorithm>

#include "core/scope.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMostWords = 10'000, kMostOfOne = 16;
constexpr std::size_t kMostBytes = 64u << 20;

}  // namespace

template <class Over>
void Unheard::erase(Words& waiting, Over over) {
  std::erase_if(waiting, [&](const Waiting& one) {
    if (!over(one)) return false;
    Used& used = used_[one.word.source];
    --used.words;
    used.bytes -= one.word.bytes();
    return true;
  });
}

std::string Unheard::no_room(const Words& waiting, const Word& word) const {
  const auto mine = [&](const Waiting& one) { return one.word.source == word.source; };
  if (std::ranges::count_if(waiting, mine) >= static_cast<std::ptrdiff_t>(kMostOfOne)) {
    return "budget: of one backend that is not registered " + std::to_string(kMostOfOne) +
           " places of a source are heard";
  }
  const auto found = used_.find(word.source);
  const Used used = found == used_.end() ? Used{} : found->second;
  if (used.words < kMostWords && used.bytes + word.bytes() <= kMostBytes) return {};
  return "budget: at most " + std::to_string(kMostBytes >> 20) + " MiB and " + std::to_string(kMostWords) +
         " words of a source about backends that are not registered are kept";
}

std::string Unheard::take(Word word) {
  Words& waiting = waiting_[word.record.backend];
  const core::Speaker who = word.who();
  const bool all = word.record.tombstone && who.name_space.empty();  // of that source
  erase(waiting, [&](const Waiting& one) { return all ? one.word.source == word.source : one.word.who() == who; });
  const std::string why = word.record.tombstone ? std::string() : no_room(waiting, word);
  if (!word.record.tombstone && why.empty()) {
    Used& used = used_[word.source];
    ++used.words;
    used.bytes += word.bytes();
    waiting.push_back({std::move(word), used.list});
  } else if (waiting.empty()) {
    waiting_.erase(word.record.backend);
  }
  return why;
}

std::vector<Word> Unheard::extract(const std::string& backend) {
  std::vector<Word> out;
  const auto found = waiting_.find(backend);
  if (found == waiting_.end()) return out;
  for (const auto& one : found->second) out.push_back(one.word);
  erase(found->second, [](const Waiting&) { return true; });
  waiting_.erase(found);
  return out;
}

void Unheard::listed(const std::string& source) {
  const auto used = used_.find(source);
  if (used == used_.end()) return;
  const std::uint64_t now = used->second.list++;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    erase(at->second, [&](const Waiting& one) { return one.word.source == source && one.list < now; });
    at = at->second.empty() ? waiting_.erase(at) : std::next(at);
  }
}

}  // namespace driftd::engine
