// SPDX-License-Identifier: Apache-2.0
// Memory for the simulation: an hour of an agent takes and returns some millions of small pieces, in one thread. Pieces
// of a size are kept in a list. Not under AddressSanitizer, which would see nothing then.
#include "simulation/delivery/memory.hpp"

#include <sqlite3.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#ifndef __SANITIZE_ADDRESS__
namespace driftd::sim {
namespace {

constexpr std::size_t kStep = 64, kLists = 80;  // up to 5 KiB: a page of SQLite with what it keeps beside it
constexpr std::size_t kChunk = std::size_t{256} << 10;

/// Before each piece. The list is kLists for what malloc() gave.
struct alignas(16) Head {
  std::uint64_t list = 0, size = 0;
};
struct Free {
  Free* next;
};
thread_local std::array<Free*, kLists> lists{};
thread_local char* chunk = nullptr;
thread_local std::size_t chunk_left = 0;

void* with_head(void* memory, std::uint64_t list, std::size_t size) {
  if (memory == nullptr) return nullptr;
  auto* const head = static_cast<Head*>(memory);
  *head = {list, size};
  return head + 1;
}

void* take(std::size_t size) {
  const std::size_t list = size == 0 ? 0 : (size - 1) / kStep;
  if (list >= kLists) return with_head(std::malloc(sizeof(Head) + size), kLists, size);
  const std::size_t whole = (list + 1) * kStep;
  if (lists[list] != nullptr) {
    Free* const piece = lists[list];
    lists[list] = piece->next;
    return piece;
  }
  if (chunk_left < sizeof(Head) + whole) {
    chunk = static_cast<char*>(std::malloc(kChunk));
    chunk_left = chunk == nullptr ? 0 : kChunk;
    if (chunk == nullptr) return nullptr;
  }
  void* const memory = std::exchange(chunk, chunk + sizeof(Head) + whole);
  chunk_left -= sizeof(Head) + whole;
  return with_head(memory, list, whole);
}

void give_back(void* piece) {
  if (piece == nullptr) return;
  Head* const head = static_cast<Head*>(piece) - 1;
  if (head->list == kLists) return std::free(head);
  const auto list = head->list;
  auto* const free = static_cast<Free*>(piece);
  free->next = lists[list];
  lists[list] = free;
}

std::size_t size_of(void* piece) { return piece == nullptr ? 0 : (static_cast<Head*>(piece) - 1)->size; }

void* sqlite_take(int size) { return take(static_cast<std::size_t>(size)); }
int sqlite_size(void* piece) { return static_cast<int>(size_of(piece)); }
int sqlite_round(int size) { return (size + 7) & ~7; }
int sqlite_begin(void*) { return SQLITE_OK; }
void sqlite_end(void*) {}

void* sqlite_retake(void* piece, int size) {
  const auto wanted = static_cast<std::size_t>(size);
  if (wanted <= size_of(piece)) return piece;
  void* const larger = take(wanted);
  if (larger == nullptr) return nullptr;
  if (piece != nullptr) std::memcpy(larger, piece, size_of(piece));
  give_back(piece);
  return larger;
}

}  // namespace

void give_sqlite_memory() {
  static const sqlite3_mem_methods kMethods = {sqlite_take,  give_back,    sqlite_retake, sqlite_size,
                                               sqlite_round, sqlite_begin, sqlite_end,    nullptr};
  sqlite3_config(SQLITE_CONFIG_MALLOC, &kMethods);
}

}  // namespace driftd::sim

void* operator new(std::size_t size) {
  void* const piece = driftd::sim::take(size);
  if (piece == nullptr) throw std::bad_alloc();
  return piece;
}
void operator delete(void* piece) noexcept { driftd::sim::give_back(piece); }
void operator delete(void* piece, std::size_t) noexcept { driftd::sim::give_back(piece); }
#else
namespace driftd::sim {
void give_sqlite_memory() {}
}  // namespace driftd::sim
#endif
