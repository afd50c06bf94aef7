// SPDX-License-Identifier: Apache-2.0
#include "check/negotiate.hpp"

#include <dlfcn.h>
#include <driftd/sink.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "check/host.hpp"
#include "check/progress.hpp"
#include "check/sink/host_table.hpp"

namespace driftd::check {
namespace {

// The accept structs of both kinds have the same layout; only the type of the table behind the pointer differs.
static_assert(sizeof(driftd_accept) == sizeof(driftd_sink_accept));
static_assert(offsetof(driftd_accept, table) == offsetof(driftd_sink_accept, table));
static_assert(offsetof(driftd_accept, refusal) == offsetof(driftd_sink_accept, refusal));

constexpr std::uint32_t kHead = 8;  // bytes of a table before its first slot

driftd_status call_entry(const Subject& subject, void* entry, const void* host, const driftd_offer* offer, void* out) {
  if (subject.plugin == PluginKind::sink) {
    return reinterpret_cast<decltype(&driftd_sink_v1)>(entry)(static_cast<const driftd_sink_host_table*>(host), offer,
                                                              static_cast<driftd_sink_accept*>(out));
  }
  return reinterpret_cast<decltype(&driftd_provider_v1)>(entry)(static_cast<const driftd_host_table*>(host), offer,
                                                                static_cast<driftd_accept*>(out));
}

}  // namespace

const char* entry_symbol(PluginKind kind) { return kind == PluginKind::sink ? "driftd_sink_v1" : "driftd_provider_v1"; }

std::uint32_t host_minor(PluginKind kind) {
  return kind == PluginKind::sink ? DRIFTD_SINK_ABI_MINOR : DRIFTD_ABI_MINOR;
}

void* find_entry(const Subject& subject) {
  set_progress("dlopen: its constructors run");
  void* library = ::dlopen(subject.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CheckNotMade(fmt::format("it cannot be loaded ({}); see binary.loads", ::dlerror()));
  void* entry = ::dlsym(library, entry_symbol(subject.plugin));
  if (entry == nullptr)
    throw CheckNotMade(fmt::format("{} is not exported; see binary.entry", entry_symbol(subject.plugin)));
  set_progress("after dlopen");
  return entry;
}

Answer negotiate(const Subject& subject, const Offer& offer, InputLayout layout) {
  void* entry = find_entry(subject);
  const char* name = entry_symbol(subject.plugin);
  const std::uint32_t minor_max = offer.minor_max == kNewestMinor ? host_minor(subject.plugin) : offer.minor_max;
  Inputs inputs(layout);
  const auto* given =
      inputs.put(driftd_offer{sizeof(driftd_offer), 0, minor_max, offer.in_process, inputs.text("driftd-check")});
  inputs.ready();
  const std::uint32_t size = offer.accept_size + layout.longer;
  const Output accept(size, layout.guard_structs);
  std::memset(accept.at(), 0, size);
  std::memcpy(accept.at(), &size, sizeof size);
  set_progress(fmt::format("{}, offered minor {} in structs of {} and {} bytes", name, minor_max,
                           sizeof(driftd_offer) + layout.longer, size));
  const void* own = subject.plugin == PluginKind::sink ? static_cast<const void*>(sink_host_table())
                                                       : static_cast<const void*>(Host::get().table());
  Answer out;
  try {
    out.status = call_entry(subject, entry, offer.host != nullptr ? offer.host : own, given, accept.at());
  } catch (...) {
    throw RuleBroken(fmt::format("{}: an exception crossed the border; expected a status", name));
  }
  driftd_accept answer{};
  std::memcpy(&answer, accept.at(), std::min<std::size_t>(size, sizeof answer));
  out.minor_built = answer.minor_built;
  out.minor_needed = answer.minor_needed;
  out.table = answer.table;
  out.written_behind = accept.written_behind();
  set_progress(fmt::format("after {}", name));
  return out;
}

Answer accepted(const Subject& subject) {
  const Answer answer = negotiate(subject);
  if (answer.status != DRIFTD_OK || answer.table == nullptr) {
    throw CheckNotMade(
        fmt::format("{} answered {}; see negotiation.minor", entry_symbol(subject.plugin), answer.status));
  }
  return answer;
}

std::uint32_t size_of(const void* table) {
  std::uint32_t size = 0;
  std::memcpy(&size, table, sizeof size);
  return size;
}

int null_slot(const void* table) {
  std::uint32_t size = 0;
  std::memcpy(&size, table, sizeof size);
  for (std::uint32_t at = kHead; at + sizeof(void*) <= size && at < 4096; at += sizeof(void*)) {
    void* slot = nullptr;
    std::memcpy(&slot, static_cast<const char*>(table) + at, sizeof slot);
    if (slot == nullptr) return static_cast<int>((at - kHead) / sizeof(void*));
  }
  return -1;
}

}  // namespace driftd::check
