// SPDX-License-Identifier: Apache-2.0
// Group negotiation: how provider and host agree on versions, sizes, slots and extensions.
#include <driftd/ext/apply.h>
#include <driftd/ext/discover.h>
#include <driftd/ext/upgrade.h>
#include <driftd/ext/watch.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "check/progress.hpp"
#include "check/raw_instance.hpp"

namespace driftd::check {
namespace {

using namespace std::chrono_literals;

const driftd_provider_table& table_of(const Answer& answer) {
  return *static_cast<const driftd_provider_table*>(answer.table);
}

/// Makes the same calls with plain inputs and with this layout, and expects the same results.
void expect_same_in(const Subject& subject, InputLayout layout, const std::string& when) {
  RawInstance plain(subject, {});
  plain.open();
  const Listing expected = plain_listing(plain);
  RawInstance odd(subject, layout);
  odd.open();
  expect_same(odd.provider(), expected, odd.refresh(), when + ", refresh");
  std::vector<Identity> ids;
  for (const auto& [identity, record] : expected) {
    if (ids.size() < 5) ids.push_back(identity);
  }
  const CallTrace read = odd.read(ids);
  if (read.status == DRIFTD_OK && listing_of(read).size() != ids.size()) {
    throw RuleBroken(fmt::format("{}, read: expected the {} records asked for, found {}; walk the array by its stride",
                                 when, ids.size(), listing_of(read).size()));
  }
  if (read.status != DRIFTD_OK) throw RuleBroken(fmt::format("{}, read: expected OK, found {}", when, read.why()));
  (void)odd.diff(ids.empty() ? Identity{} : ids.front());
  (void)odd.health();
}

/// A host table of a newer minor version. It has more slots, which an older provider must not touch.
struct NewerHost {
  driftd_host_table table = *Host::own_table();
  void* slots[5] = {};
};

void newer_host(const Subject& subject) {
  static NewerHost host;
  host.table.size = sizeof host;
  host.table.minor = DRIFTD_ABI_MINOR + 5;
  std::memset(host.slots, 0xA5, sizeof host.slots);
  const Answer plain = accepted(subject);
  const Answer newer =
      negotiate(subject, {.minor_max = DRIFTD_ABI_MINOR + 5, .host = &host.table}, {.longer = kLonger});
  if (newer.status != DRIFTD_OK) {
    throw RuleBroken(fmt::format(
        "a host of minor {}, whose structs are {} bytes longer: expected OK, found status {}; never compare "
        "`size` for equality: use min(your own, given)",
        DRIFTD_ABI_MINOR + 5, kLonger, newer.status));
  }
  expect_same_answer(plain, newer, "to a newer host");
  expect_same_in(subject, {.longer = kLonger}, fmt::format("structs that are {} bytes longer", kLonger));
}

void guard_page(const Subject& subject) {
  set_progress_note(
      "a page without access lies right behind each struct: read min(your own sizeof, given size), not more");
  (void)negotiate(subject, {}, {.guard_structs = true});
  (void)negotiate(subject, {.accept_size = kFirstAccept}, {.guard_structs = true});
  expect_same_in(subject, {.guard_structs = true}, "a guard page behind each struct");
}

void no_overwrite(const Subject& subject) {
  expect_no_write_behind_accept(subject);
  RawInstance instance(subject, {});
  instance.open();
  (void)instance.refresh();
  if (instance.written_behind() == 0) return;
  throw RuleBroken(
      fmt::format("driftd_refresh_result of {} bytes: expected nothing written behind it, found {} changed bytes",
                  sizeof(driftd_refresh_result), instance.written_behind()));
}

struct Extension {
  const char* id;
  std::uint32_t revision;
  std::uint32_t size;  ///< size of the table in its first revision
};
constexpr std::array kExtensions{
    Extension{DRIFTD_EXT_WATCH, DRIFTD_EXT_WATCH_REVISION, sizeof(driftd_watch_table)},
    Extension{DRIFTD_EXT_DISCOVER, DRIFTD_EXT_DISCOVER_REVISION, sizeof(driftd_discover_table)},
    Extension{DRIFTD_EXT_UPGRADE, DRIFTD_EXT_UPGRADE_REVISION, sizeof(driftd_upgrade_table)},
    Extension{DRIFTD_EXT_APPLY, DRIFTD_EXT_APPLY_REVISION, sizeof(driftd_apply_table)}};

using NamedExtensions = std::map<std::pair<std::string, std::uint32_t>, std::uint32_t>;  ///< id and revision → minimum
                                                                                         ///< size

/// Returns the extensions that describe names. Reads nothing else of its document.
NamedExtensions named_extensions(const Answer& answer) {
  std::string text;
  const auto push = [](void* user, driftd_str pushed) {
    static_cast<std::string*>(user)->assign(pushed.data, pushed.len);
  };
  set_progress("describe");
  (void)table_of(answer).describe(push, &text);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw CheckNotMade("describe pushes no JSON object; see schema.describe");
  NamedExtensions out;
  for (const auto& item : json.value("extensions", nlohmann::json::array())) {
    if (!item.is_object()) throw CheckNotMade("describe names an extension that is not an object; see schema.describe");
    out[{item.value("id", ""), item.value("revision", 0U)}] = 2 * sizeof(void*);
  }
  return out;
}

void unknown_extension(const Subject& subject) {
  const Answer answer = accepted(subject);
  const NamedExtensions known = named_extensions(answer);
  std::vector<std::pair<std::string, std::uint32_t>> asked{
      {"driftd.nothing", 1}, {"", 1}, {"driftd", 1}, {std::string("driftd.watch\0", 13), 1}};
  for (const auto& extension : kExtensions) {
    const std::string id = extension.id;
    for (const std::uint32_t revision : {0U, 2U, 1000U, ~0U}) asked.emplace_back(id, revision);
    for (const auto& odd : {id + "x", id + "/1", id.substr(0, id.size() - 1), " " + id, "D" + id.substr(1)})
      asked.emplace_back(odd, 1);
  }
  std::erase_if(asked, [&](const auto& name) { return known.contains(name); });
  expect_no_extension(table_of(answer).query, asked);
}

void expect_sound_table(const driftd_provider_table& table, const std::string& id, std::uint32_t revision,
                        std::uint32_t least, bool named) {
  const std::string name = fmt::format("{}/{}", id, revision);
  set_progress("query of " + name);
  const void* found = table.query({id.data(), id.size()}, revision);
  if (named && found == nullptr) {
    throw RuleBroken(fmt::format(
        "{}: expected a table, since describe names it, found NULL from query; offer both or neither", name));
  }
  if (!named && found != nullptr) {
    throw RuleBroken(fmt::format(
        "{}: expected it in `extensions` of describe, since query answers a table, found it missing", name));
  }
  if (found == nullptr) return;
  if (size_of(found) < least) {
    throw RuleBroken(
        fmt::format("{}: expected a table of at least {} bytes, found size {}", name, least, size_of(found)));
  }
  if (const int slot = null_slot(found); slot >= 0) {
    throw RuleBroken(fmt::format("{}: expected a function in each slot, found NULL in slot {}", name, slot + 1));
  }
}

void whole_extensions(const Subject& subject) {
  const Answer answer = accepted(subject);
  const NamedExtensions named = named_extensions(answer);
  for (const auto& extension : kExtensions) {
    expect_sound_table(table_of(answer), extension.id, extension.revision, extension.size,
                       named.contains({extension.id, extension.revision}));
  }
  for (const auto& [key, least] : named) expect_sound_table(table_of(answer), key.first, key.second, least, true);
}

constexpr Check kNegotiationChecks[] = {
    {"negotiation.minor", Level::must, "it can live with this host's minor; a refusal is UNSUPPORTED", 20s, &minor},
    {"negotiation.honest_need", Level::must, "an offer below minor_needed is refused, not accepted", 20s, &honest_need},
    {"negotiation.repeat", Level::must, "the entry answers the same each time, from any thread", 20s, &repeat},
    {"negotiation.newer_host", Level::must,
     "larger offer, host table and argument structs of a newer minor change nothing", 100s, &newer_host},
    {"negotiation.guard_page", Level::must, "nothing is read behind the `size` of a struct", 100s, &guard_page},
    {"negotiation.no_overwrite", Level::must, "nothing is written behind the `size` of a struct", 100s, &no_overwrite},
    {"negotiation.slots", Level::must, "no slot inside the table's size is NULL", 20s, &slots},
    {"negotiation.unknown_extension", Level::must, "unknown ids, revision 0, a huge revision, an id with a tail: NULL",
     20s, &unknown_extension},
    {"negotiation.whole_extensions", Level::must, "describe and query name the same extensions, without a NULL slot",
     20s, &whole_extensions},
};

}  // namespace

std::span<const Check> negotiation_checks() { return kNegotiationChecks; }

}  // namespace driftd::check
