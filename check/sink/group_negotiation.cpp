// SPDX-License-Identifier: Apache-2.0
// Group negotiation: how sink and host agree on versions, sizes, slots and extensions.
#include <fmt/format.h>

#include <cstring>

#include "check/negotiate.hpp"
#include "check/progress.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/host_table.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using namespace std::chrono_literals;

/// Makes the same calls with plain inputs and with this layout. Both must deliver.
void expect_works_in(const Subject& subject, const char* id, InputLayout layout, const std::string& when) {
  Stand stand(subject, id);
  stand.expect_works_at_all();
  const auto odd = SinkInstance::open_plain(stand.subject(), {layout, false});
  stand.expect_delivers(*odd, when, 3);
  (void)odd->probe();
  if (odd->has_flush()) (void)odd->flush();
}

/// A host table of a newer minor version. It has more slots, which an older sink must not touch.
struct NewerHost {
  driftd_sink_host_table table = *own_sink_host_table();
  void* slots[5] = {};
};

void newer_host(const Subject& subject) {
  constexpr std::uint32_t kNewer = DRIFTD_SINK_ABI_MINOR + 5;
  static NewerHost host;
  host.table.size = sizeof host;
  host.table.minor = kNewer;
  std::memset(host.slots, 0xA5, sizeof host.slots);
  Stand stand(subject, "negotiation.newer_host");
  const Answer plain = accepted(subject);
  const Answer newer = negotiate(subject, {.minor_max = kNewer, .host = &host.table}, {.longer = kLonger});
  if (newer.status != DRIFTD_OK) {
    throw RuleBroken(fmt::format(
        "a host of minor {}, whose structs are {} bytes longer: expected OK, found status {}; never compare `size` for "
        "equality: use min(your own, given)",
        kNewer, kLonger, newer.status));
  }
  expect_same_answer(plain, newer, "to a newer host");
  stand.expect_works_at_all();
  const auto odd = SinkInstance::open_plain(stand.subject(), {{.longer = kLonger}, false});
  stand.expect_delivers(*odd, fmt::format("structs that are {} bytes longer (walk arrays by their stride)", kLonger),
                        3);
}

void guard_page(const Subject& subject) {
  set_progress_note(
      "a page without access lies right behind each struct: read min(your own sizeof, given size), not more");
  expect_works_in(subject, "negotiation.guard_page", {.guard_structs = true}, "a guard page behind each struct");
  (void)negotiate(subject, {}, {.guard_structs = true});
}

void unknown_extension(const Subject& subject) {
  const Answer answer = accepted(subject);
  const auto& table = *static_cast<const driftd_sink_table*>(answer.table);
  std::vector<ExtensionName> asked;
  for (const std::string& id : {std::string(), std::string("driftd"), std::string("driftd.nothing"),
                                std::string("driftd.watch"), std::string("driftd.nothing\0x", 16)}) {
    for (const std::uint32_t revision : {0U, 1U, 2U, ~0U}) asked.emplace_back(id, revision);
  }
  expect_no_extension(table.query, asked);
}

constexpr Check kNegotiationChecks[] = {
    {"negotiation.minor", Level::must, "it can live with this host's minor; a refusal is UNSUPPORTED", 20s, &minor},
    {"negotiation.honest_need", Level::must, "an offer below minor_needed is refused, not accepted", 20s, &honest_need},
    {"negotiation.repeat", Level::must, "the entry answers the same each time, from any thread", 20s, &repeat},
    {"negotiation.newer_host", Level::must,
     "larger offer, host table and argument structs of a newer minor change nothing", 100s, &newer_host},
    {"negotiation.guard_page", Level::must, "nothing is read behind the `size` of a struct", 100s, &guard_page},
    {"negotiation.no_overwrite", Level::must, "nothing is written behind the `size` of the accept struct", 20s,
     &expect_no_write_behind_accept},
    {"negotiation.slots", Level::must, "no slot inside the table's size is NULL", 20s, &slots},
    {"negotiation.unknown_extension", Level::must, "unknown ids, revision 0, a huge revision, an id with a tail: NULL",
     20s, &unknown_extension},
};

}  // namespace

std::span<const Check> negotiation_checks() { return kNegotiationChecks; }

}  // namespace driftd::check::sink
