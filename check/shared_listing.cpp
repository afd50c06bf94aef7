// SPDX-License-Identifier: Apache-2.0
#include "check/shared_listing.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <string_view>

namespace driftd::check {
namespace {

constexpr std::size_t kSize = 512u << 20;  // bytes of address space; pages that are never written cost nothing

void append(std::string& to, std::string_view text) {
  const std::uint64_t size = text.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof size);
  to += text;
}

std::string pop(std::string_view& from) {
  std::uint64_t size = 0;
  std::memcpy(&size, from.data(), sizeof size);
  std::string out(from.substr(sizeof size, size));
  from.remove_prefix(sizeof size + size);
  return out;
}

}  // namespace

SharedListing::SharedListing() {
  void* made = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) throw CheckNotMade(fmt::format("no memory to keep a listing in: {}", std::strerror(errno)));
  at_ = static_cast<char*>(made);
}

SharedListing::~SharedListing() { ::munmap(at_, kSize); }

void SharedListing::write(const Listing& listing) {
  std::string out;
  for (const auto& [identity, record] : listing) {
    for (const auto& text : {identity.id.kind, identity.id.id, identity.backend, record.body, record.external_name,
                             std::to_string(record.revision), std::to_string(record.unread.size())}) {
      append(out, text);
    }
    for (const auto& unread : record.unread) append(out, unread.path);
  }
  const std::uint64_t size = out.size();
  if (size + sizeof size > kSize)
    throw CheckNotMade(fmt::format("a listing of {} bytes is too large to be kept", size));
  std::memcpy(at_, &size, sizeof size);
  std::memcpy(at_ + sizeof size, out.data(), out.size());
}

Listing SharedListing::read() const {
  std::uint64_t size = 0;
  std::memcpy(&size, at_, sizeof size);
  std::string_view from(at_ + sizeof size, size);
  Listing out;
  while (!from.empty()) {
    Record record;
    record.id.kind = pop(from);
    record.id.id = pop(from);
    record.backend = pop(from);
    record.body = pop(from);
    record.external_name = pop(from);
    record.revision = static_cast<std::uint32_t>(std::stoul(pop(from)));
    const auto unread = std::stoul(pop(from));
    for (std::size_t i = 0; i < unread; ++i) record.unread.push_back({pop(from), Code::denied, {}});
    out[identity_of(record)] = std::move(record);
  }
  return out;
}

}  // namespace driftd::check
