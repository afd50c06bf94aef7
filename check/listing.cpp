// SPDX-License-Identifier: Apache-2.0
#include "check/listing.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "core/judge/diff.hpp"

namespace driftd::check {
namespace {

std::shared_ptr<const core::KindSchema> schema_of(const Provider& provider, const std::string& kind) {
  const auto& schemas = provider.info().schemas;
  const auto found = schemas.find(kind);
  return found == schemas.end() ? core::KindSchema::unknown(kind) : found->second;
}

using Counts = std::map<std::pair<std::string, std::string>, std::uint64_t>;

Counts counts_of(const Listing& listing) {
  Counts out;
  for (const auto& [identity, record] : listing) ++out[{identity.id.kind, identity.backend}];
  return out;
}

std::uint64_t count_in(const Counts& counts, const std::pair<std::string, std::string>& of) {
  const auto found = counts.find(of);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

Identity identity_of(const Record& record) { return {record.id, record.backend}; }

void add(Listing& to, const std::vector<Record>& records, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < std::min(end, records.size()); ++i) to[identity_of(records[i])] = records[i];
}

Listing listing_of(const CallTrace& trace) {
  Listing out;
  add(out, trace.records);
  return out;
}

CallTrace list(const Instance& instance, const CallArguments& arguments, const CallFaults& faults) {
  CallTrace trace = instance.refresh(arguments, faults);
  if (trace.status != DRIFTD_OK) throw CheckNotMade(fmt::format("refresh answered {}; see refresh.works", trace.why()));
  if (trace.unchanged) throw CheckNotMade("refresh answered `unchanged` without a cursor; see refresh.unchanged");
  return trace;
}

std::string difference(const Provider& provider, const Record& a, const Record& b) {
  const std::string name = render(identity_of(a));
  if (a.external_name != b.external_name) return name + ": another external_name";
  const auto old_body = core::parse(a.body), new_body = core::parse(b.body);
  if (!old_body || !new_body) throw CheckNotMade(name + ": a body is not valid JSON; see schema.bodies");
  core::DiffOptions options;
  options.old_revision = b.revision;
  options.unread = b.unread;
  for (const auto& unread : a.unread) options.was_unread.push_back(unread.path);
  const auto found = core::diff(*old_body, *new_body, *schema_of(provider, a.id.kind), options);
  if (found.changes.empty()) return {};
  return fmt::format("{}: attribute `{}` differs", name, found.changes.front().path);
}

std::string difference(const Provider& provider, const Listing& a, const Listing& b) {
  for (const auto& [identity, record] : a) {
    const auto other = b.find(identity);
    if (other == b.end()) return render(identity) + " is missing the second time";
    if (auto found = difference(provider, record, other->second); !found.empty()) return found;
  }
  for (const auto& [identity, record] : b) {
    if (!a.contains(identity)) return render(identity) + " came only the second time";
  }
  return {};
}

std::string difference_over_time(const Subject& subject) {
  constexpr int kLists = 5, kApartMs = 40;
  auto [opened, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
  if (instance == nullptr) return {};
  std::optional<Listing> before;
  for (int i = 0; i < kLists; ++i) {
    const CallTrace trace = instance->refresh();
    if (trace.status != DRIFTD_OK) return {};
    Listing now = listing_of(trace);
    std::string found = before ? difference(instance->provider(), *before, now) : "";
    if (!found.empty()) return found;
    before = std::move(now);
    (void)::poll(nullptr, 0, kApartMs);
  }
  return {};
}

void expect_true_completes(const Instance& instance, const Listing& whole, const CallTrace& trace,
                           const std::string& when, const Listing& before) {
  Listing seen = before;
  add(seen, trace.records);
  Counts found = counts_of(seen), real = counts_of(whole);
  bool fresh = false;
  for (const auto& [of, count] : trace.complete()) {
    if (count != count_in(real, of) && !std::exchange(fresh, true)) real = counts_of(listing_of(list(instance)));
    const std::uint64_t emitted = count_in(found, of), exist = count_in(real, of);
    if (count == emitted && count == exist) continue;
    throw RuleBroken(
        fmt::format("{}: COMPLETE of kind `{}` says {}, {} were emitted and there are {}; what is missing after "
                    "a COMPLETE becomes a deletion, so mark only what was listed whole",
                    when, of.first, count, emitted, exist));
  }
}

}  // namespace driftd::check
