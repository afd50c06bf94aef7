// SPDX-License-Identifier: Apache-2.0
#include "worker/negotiate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "worker/abi_input.hpp"
#include "worker/guarded_struct.hpp"
#include "worker/host_table.hpp"

namespace driftd::worker {
namespace {

constexpr std::size_t kFirstTableSize = 88;      // driftd_provider_table of ABI 1.0
constexpr std::size_t kFirstSinkTableSize = 80;  // driftd_sink_table of ABI 1.0-rc
constexpr std::size_t kHead = 2 * sizeof(std::uint32_t);

/// One of the two ABIs that a plugin may speak, as messages name it.
struct AbiName {
  const char* entry;
  const char* accept;
  std::uint32_t major, minor;
};
constexpr AbiName kProviderAbi{"driftd_provider_v1", "driftd_accept", DRIFTD_ABI_MAJOR, DRIFTD_ABI_MINOR};
constexpr AbiName kSinkAbi{"driftd_sink_v1", "driftd_sink_accept", DRIFTD_SINK_ABI_MAJOR, DRIFTD_SINK_ABI_MINOR};

template <class Accept>
Error refusal(const std::string& file, const Accept& accept, const AbiName& abi) {
  if (accept.minor_needed <= abi.minor && accept.refusal.len > 0) {
    return {Code::unsupported,
            fmt::format("{}: the plugin refuses: {}", file, ipc::printable(view(accept.refusal), 1024))};
  }
  return {Code::unsupported,
          fmt::format("{}: the plugin needs a host of ABI {}.{} (it was built with {}.{}), this agent speaks {}.{}; "
                      "upgrade driftd, or install a build of the plugin for {}.{}",
                      file, abi.major, accept.minor_needed, abi.major, accept.minor_built, abi.major, abi.minor,
                      abi.major, abi.minor)};
}

/// Offers our minor versions to a plugin. Returns its answer if it accepts and names a table.
template <class Accept, class Host>
Result<Accept> ask_entry(const std::string& file, const Host* host,
                         driftd_status (*entry)(const Host*, const driftd_offer*, Accept*), bool in_process,
                         const AbiName& abi) {
  driftd_offer offer{};
  offer.size = sizeof offer;
  offer.minor_max = abi.minor;
  offer.in_process = in_process ? 1 : 0;
  offer.host_version = {"0.1.0", 5};
  GuardedStruct<Accept> framed;
  const driftd_status status = entry(host, &offer, &framed.value);
  if (!framed.intact()) {
    return fail(Code::invalid, fmt::format("{}: {} wrote behind the `size` of {}; it must fill in no more than the "
                                           "smaller of its own sizeof and that size",
                                           file, abi.entry, abi.accept));
  }
  const Accept& accept = framed.value;
  if (accept.minor_needed > abi.minor || status == DRIFTD_UNSUPPORTED) return fail(refusal(file, accept, abi));
  if (status != DRIFTD_OK)
    return fail(code_of(status), fmt::format("{}: {} answered {}", file, abi.entry, render(code_of(status))));
  if (accept.table == nullptr)
    return fail(Code::invalid, fmt::format("{}: {}.table is NULL; point it at a static table", file, abi.accept));
  return accept;
}

}  // namespace

Status adopt_table(const OwnTable& own, const void* peer, const std::string& what) {
  std::uint32_t given = 0;
  std::memcpy(&given, peer, sizeof given);
  if (given < own.first_size) {
    const std::size_t there = given < kHead ? 0 : (given - kHead) / sizeof(void*);
    return fail(
        Code::invalid,
        fmt::format("{}: the function table's size is {}, expected at least {}: slot `{}` is missing; set `size` "
                    "to the sizeof of the table",
                    what, given, own.first_size, own.slots[std::min(there, own.slots.size() - 1)]));
  }
  const std::size_t there = (given - kHead) / sizeof(void*);
  for (std::size_t i = 0; i < std::min(there, own.slots.size()); ++i) {
    void* slot = nullptr;
    std::memcpy(&slot, static_cast<const char*>(peer) + kHead + i * sizeof slot, sizeof slot);
    if (slot == nullptr) {
      return fail(Code::invalid, fmt::format("{}: slot `{}` is NULL inside the declared size of {} bytes; a function "
                                             "that is not offered must answer UNSUPPORTED",
                                             what, own.slots[i], given));
    }
  }
  std::memcpy(own.into, peer, std::min<std::size_t>(given, own.size));
  const auto size = static_cast<std::uint32_t>(own.size);
  std::memcpy(own.into, &size, sizeof size);
  return {};
}

driftd_provider_table unsupported_table() {
  driftd_provider_table t{};
  t.size = sizeof t;
  t.describe = [](driftd_push_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.schema = [](driftd_str, driftd_push_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.open = [](driftd_call, const driftd_open_args*, driftd_instance*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.read = [](driftd_instance, driftd_call, const driftd_identity*, std::uint32_t, std::uint32_t) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.refresh = [](driftd_instance, driftd_call, const driftd_refresh_args*, driftd_refresh_result*) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.diff = [](driftd_instance, const driftd_diff_args*, driftd_verdict_fn, void*) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.health = [](driftd_instance, driftd_call, driftd_health_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.wake = [](driftd_instance) {};
  t.close = [](driftd_instance) {};
  t.query = [](driftd_str, std::uint32_t) -> const void* { return nullptr; };
  return t;
}

Result<driftd_provider_table> negotiate(const std::string& file, EntryFunction* entry, bool in_process) {
  DRIFTD_TRY(const auto accept, ask_entry<driftd_accept>(file, host_table(), entry, in_process, kProviderAbi));
  driftd_provider_table table = unsupported_table();
  const OwnTable own{&table,
                     sizeof table,
                     kFirstTableSize,
                     {"describe", "schema", "open", "read", "refresh", "diff", "health", "wake", "close", "query"}};
  DRIFTD_CHECK(adopt_table(own, accept.table, file));
  return table;
}

Result<driftd_sink_table> negotiate_sink(const std::string& file, SinkEntryFunction* entry, bool in_process) {
  DRIFTD_TRY(const auto accept, ask_entry<driftd_sink_accept>(file, sink_host_table(), entry, in_process, kSinkAbi));
  driftd_sink_table table{};  // all of its functions are in the first release
  const OwnTable own{&table,
                     sizeof table,
                     kFirstSinkTableSize,
                     {"describe", "schema", "open", "deliver", "probe", "flush", "wake", "close", "query"}};
  DRIFTD_CHECK(adopt_table(own, accept.table, file));
  return table;
}

driftd_provider_table provider_part(const driftd_sink_table& sink) {
  driftd_provider_table out = unsupported_table();
  out.describe = sink.describe;
  out.schema = sink.schema;
  out.health = sink.probe;
  out.wake = sink.wake;
  out.close = sink.close;
  out.query = sink.query;
  return out;
}

}  // namespace driftd::worker
