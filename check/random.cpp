// SPDX-License-Identifier: Apache-2.0
#include "check/random.hpp"

#include <algorithm>
#include <set>

#include "base/digest.hpp"

namespace driftd::check {

std::mt19937_64 random_of(const Subject& subject, const char* id) {
  std::seed_seq seed{static_cast<std::uint32_t>(subject.seed), static_cast<std::uint32_t>(subject.seed >> 32),
                     static_cast<std::uint32_t>(digest(0, {id}).low)};
  return std::mt19937_64(seed);
}

std::size_t below(std::mt19937_64& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

std::vector<std::uint64_t> spread(std::mt19937_64& random, std::uint64_t last, std::size_t count) {
  std::set<std::uint64_t> out;
  for (std::uint64_t i = 1; i <= std::min<std::uint64_t>(last, last <= count ? last : count / 3); ++i) {
    out.insert(i);
    out.insert(last + 1 - i);
  }
  while (out.size() < std::min<std::uint64_t>(count, last)) out.insert(1 + random() % last);
  return {out.begin(), out.end()};
}

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

std::string random_word(std::mt19937_64& random, std::size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = "abcdefghijklmnopqrstuvwxyz0123456789"[random() % 36];
  return out;
}

}  // namespace driftd::check
