// SPDX-License-Identifier: Apache-2.0
#include "check/pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace driftd::check {
namespace {

constexpr std::size_t kSlack = 64;
constexpr int kPoison = 0xDD, kGarbage = 0xA5;

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
std::size_t rounded(std::size_t size) { return (size + page_size() - 1) / page_size() * page_size(); }

/// Maps whole pages for `size` bytes, followed by one inaccessible page.
char* map_guarded(std::size_t size) {
  const std::size_t pages = rounded(size);
  void* made = ::mmap(nullptr, pages + page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  char* at = static_cast<char*>(made);
  if (::mprotect(at + pages, page_size(), PROT_NONE) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect");
  return at;
}

}  // namespace

Inputs::~Inputs() {
  if (layout_.kept) return;
  for (const auto& block : blocks_) {
    if (!layout_.poison) {
      ::munmap(block.at, block.size + page_size());
    } else if (::mprotect(block.at, block.size, PROT_READ | PROT_WRITE) == 0) {
      std::memset(block.at, kPoison, block.size);  // stays mapped, so that nothing else is placed here
    }
  }
}

char* Inputs::block(std::size_t size, bool guarded) {
  const std::size_t room = rounded(size + (guarded ? 0 : kSlack));
  char* at = map_guarded(room == 0 ? 1 : room);
  const std::size_t mapped = room == 0 ? page_size() : room;
  blocks_.push_back({at, mapped});
  return guarded ? at + mapped - size : at;
}

driftd_str Inputs::text(std::string_view text) {
  char* at = block(text.size(), layout_.guard_texts);
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

const void* Inputs::put_structs(const void* values, std::size_t size, std::size_t count, bool sized) {
  const std::size_t stride = size + (sized ? layout_.longer : 0);
  char* at = block(stride * count, layout_.guard_structs);
  for (std::size_t i = 0; i < count; ++i) {
    char* element = at + i * stride;
    std::memcpy(element, static_cast<const char*>(values) + i * size, size);
    std::memset(element + size, kGarbage, stride - size);
    const auto own = static_cast<std::uint32_t>(stride);
    if (sized) std::memcpy(element, &own, sizeof own);
  }
  return at;
}

void Inputs::ready() {
  if (!layout_.read_only) return;
  for (const auto& block : blocks_) {
    if (::mprotect(block.at, block.size, PROT_READ) != 0)
      throw std::system_error(errno, std::generic_category(), "mprotect");
  }
}

Output::Output(std::size_t size, bool guarded)
    : mapping_(map_guarded(size + (guarded ? 0 : kSlack))),
      size_(size),
      mapped_(rounded(size + (guarded ? 0 : kSlack))),
      guarded_(guarded) {
  at_ = guarded ? mapping_ + mapped_ - size : mapping_;
  if (!guarded) std::memset(at_ + size, kGarbage, kSlack);
}

Output::~Output() { ::munmap(mapping_, mapped_ + page_size()); }

std::size_t Output::written_behind() const {
  std::size_t out = 0;
  for (std::size_t i = 0; !guarded_ && i < kSlack; ++i) out += static_cast<unsigned char>(at_[size_ + i]) != kGarbage;
  return out;
}

}  // namespace driftd::check
