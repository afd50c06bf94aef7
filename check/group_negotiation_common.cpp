// SPDX-License-Identifier: Apache-2.0
// Group negotiation, the checks that hold for every kind of plugin.
#include <driftd/sink.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <thread>

#include "check/negotiate.hpp"
#include "check/progress.hpp"

namespace driftd::check {
namespace {

std::string versions(const Subject& subject, const Answer& answer) {
  constexpr int kMajor = 1;  // of both kinds
  static_assert(kMajor == DRIFTD_ABI_MAJOR && kMajor == DRIFTD_SINK_ABI_MAJOR);
  return fmt::format("it was built with {0}.{1} and needs {0}.{2}, this host speaks {0}.{3}", kMajor,
                     answer.minor_built, answer.minor_needed, host_minor(subject.plugin));
}

std::string slot_name(PluginKind kind, int slot) {
  static constexpr std::array kProvider{"describe", "schema", "open", "read",  "refresh",
                                        "diff",     "health", "wake", "close", "query"};
  static constexpr std::array kSink{"describe", "schema", "open",  "deliver", "probe",
                                    "flush",    "wake",   "close", "query"};
  const auto at = static_cast<std::size_t>(slot);
  if (kind == PluginKind::sink && at < kSink.size()) return kSink[at];
  if (kind == PluginKind::provider && at < kProvider.size()) return kProvider[at];
  return "a newer slot";
}

}  // namespace

void minor(const Subject& subject) {
  const Answer answer = negotiate(subject);
  if (answer.status == DRIFTD_UNSUPPORTED) {
    throw RuleBroken(fmt::format(
        "expected OK for minor {}, found UNSUPPORTED: {}; build it against the header of this host, or need "
        "less: minor_needed is the oldest minor that it can live with",
        host_minor(subject.plugin), versions(subject, answer)));
  }
  if (answer.status != DRIFTD_OK) {
    throw RuleBroken(fmt::format("expected OK, or UNSUPPORTED as a refusal, found status {}", answer.status));
  }
  if (answer.table == nullptr) throw RuleBroken("expected driftd_accept.table, found NULL; point it at a static table");
  if (answer.minor_needed > answer.minor_built) {
    throw RuleBroken(fmt::format("expected minor_needed up to minor_built, found {} above {}", answer.minor_needed,
                                 answer.minor_built));
  }
  const Answer inside = negotiate(subject, {.in_process = 1});
  if (inside.status == DRIFTD_OK || inside.status == DRIFTD_UNSUPPORTED) return;
  throw RuleBroken(
      fmt::format("offered to run in-process: expected OK or UNSUPPORTED, found status {}", inside.status));
}

void honest_need(const Subject& subject) {
  for (const std::uint32_t offered : {std::uint32_t{0}, host_minor(subject.plugin)}) {
    const Answer answer = negotiate(subject, {.minor_max = offered});
    if (answer.status != DRIFTD_OK || answer.minor_needed <= offered) continue;
    throw RuleBroken(fmt::format(
        "offered minor {}: expected UNSUPPORTED, since it needs minor {}, found OK; compare offer.minor_max "
        "with minor_needed and refuse",
        offered, answer.minor_needed));
  }
}

void expect_same_answer(const Answer& first, const Answer& again, const std::string& when) {
  const auto differs = [&](const char* what) {
    throw RuleBroken(
        fmt::format("{}: expected the same {} as the first time, found another; the entry is [pure]: answer constants",
                    when, what));
  };
  if (again.status != first.status) differs("status");
  if (again.minor_built != first.minor_built || again.minor_needed != first.minor_needed) differs("minor");
  if (again.table != first.table) differs("table");
}

void repeat(const Subject& subject) {
  const Answer first = accepted(subject);
  std::uint32_t size = 0;
  std::memcpy(&size, first.table, sizeof size);
  const std::string before(reinterpret_cast<const char*>(first.table), size);
  for (int i = 0; i < 10; ++i) expect_same_answer(first, negotiate(subject), fmt::format("call {}", i + 2));
  std::vector<Answer> answers(8);
  std::vector<std::thread> threads;
  for (auto& answer : answers) threads.emplace_back([&] { answer = negotiate(subject); });
  for (auto& thread : threads) thread.join();
  for (const auto& answer : answers) expect_same_answer(first, answer, "on eight threads at once");
  if (before == std::string(reinterpret_cast<const char*>(first.table), size)) return;
  throw RuleBroken("expected a table that does not change, found one that later calls wrote to; make it const");
}

void slots(const Subject& subject) {
  constexpr std::uint32_t kFirstProviderTable = 88, kFirstSinkTable = 80;  // bytes in the first minor of each ABI
  const bool sink = subject.plugin == PluginKind::sink;
  const std::uint32_t least = sink ? kFirstSinkTable : kFirstProviderTable;
  const char* type = sink ? "driftd_sink_table" : "driftd_provider_table";
  const Answer answer = accepted(subject);
  if (size_of(answer.table) < least) {
    throw RuleBroken(fmt::format("{0}.size: expected at least {1}, found {2}; set it to sizeof({0})", type, least,
                                 size_of(answer.table)));
  }
  const int slot = null_slot(answer.table);
  if (slot < 0) return;
  throw RuleBroken(
      fmt::format("expected a function in each slot inside the table's size, found NULL in `{}`; what is not offered "
                  "answers UNSUPPORTED",
                  slot_name(subject.plugin, slot)));
}

void expect_no_write_behind_accept(const Subject& subject) {
  const char* type = subject.plugin == PluginKind::sink ? "driftd_sink_accept" : "driftd_accept";
  for (const std::uint32_t size : {std::uint32_t{sizeof(driftd_accept)}, kFirstAccept}) {
    if (subject.plugin == PluginKind::sink && size == kFirstAccept) continue;  // sinks never had the shorter form
    const Answer answer = negotiate(subject, {.accept_size = size});
    if (answer.written_behind == 0) continue;
    throw RuleBroken(
        fmt::format("{} of {} bytes: expected nothing written behind it, found {} changed bytes; write only "
                    "fields that lie inside the `size` that the host gave",
                    type, size, answer.written_behind));
  }
}

void expect_no_extension(const void* (*query)(driftd_str, std::uint32_t), const std::vector<ExtensionName>& asked) {
  for (const auto& [id, revision] : asked) {
    Inputs inputs({.guard_texts = true});
    const driftd_str name = inputs.text(id);
    set_progress(fmt::format("query(\"{}\", {}), a text that ends at a page end", id, revision));
    if (query(name, revision) == nullptr) continue;
    throw RuleBroken(fmt::format(
        "query(\"{}\", {}): expected NULL, found a table; compare the whole id, by its length, and the revision", id,
        revision));
  }
}

}  // namespace driftd::check
