// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/pending_reports.hpp"

#include <algorithm>

#include "core/scope.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kMaxReports = 10'000, kMaxPerBackend = 16;
constexpr std::size_t kMaxBytes = 64u << 20;

}  // namespace

template <class Over>
void PendingReports::erase(Reports& waiting, Over over) {
  std::erase_if(waiting, [&](const PendingReport& one) {
    if (!over(one)) return false;
    Usage& usage = usage_[one.report.source];
    --usage.reports;
    usage.bytes -= one.report.bytes();
    return true;
  });
}

std::string PendingReports::no_room(const Reports& waiting, const RegistrationReport& report) const {
  const auto mine = [&](const PendingReport& one) { return one.report.source == report.source; };
  if (std::ranges::count_if(waiting, mine) >= static_cast<std::ptrdiff_t>(kMaxPerBackend)) {
    return "budget: a source may report on one backend that is not registered from at most " +
           std::to_string(kMaxPerBackend) + " namespaces";
  }
  const auto found = usage_.find(report.source);
  const Usage usage = found == usage_.end() ? Usage{} : found->second;
  if (usage.reports < kMaxReports && usage.bytes + report.bytes() <= kMaxBytes) return {};
  return "budget: at most " + std::to_string(kMaxBytes >> 20) + " MiB and " + std::to_string(kMaxReports) +
         " reports of a source about backends that are not registered are kept";
}

std::string PendingReports::try_add(RegistrationReport report) {
  Reports& waiting = waiting_[report.record.backend];
  const core::Registrar who = report.who();
  const bool all = report.record.tombstone && who.name_space.empty();  // drops all reports of that source
  erase(waiting,
        [&](const PendingReport& one) { return all ? one.report.source == report.source : one.report.who() == who; });
  std::string why = report.record.tombstone ? std::string() : no_room(waiting, report);
  if (!report.record.tombstone && why.empty()) {
    Usage& usage = usage_[report.source];
    ++usage.reports;
    usage.bytes += report.bytes();
    waiting.push_back({std::move(report), usage.list});
  } else if (waiting.empty()) {
    waiting_.erase(report.record.backend);
  }
  return why;
}

std::vector<RegistrationReport> PendingReports::extract(const std::string& backend) {
  std::vector<RegistrationReport> out;
  const auto found = waiting_.find(backend);
  if (found == waiting_.end()) return out;
  for (const auto& one : found->second) out.push_back(one.report);
  erase(found->second, [](const PendingReport&) { return true; });
  waiting_.erase(found);
  return out;
}

void PendingReports::listed(const std::string& source) {
  const auto usage = usage_.find(source);
  if (usage == usage_.end()) return;
  const std::uint64_t now = usage->second.list++;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    erase(at->second, [&](const PendingReport& one) { return one.report.source == source && one.list < now; });
    at = at->second.empty() ? waiting_.erase(at) : std::next(at);
  }
}

}  // namespace driftd::engine
