// SPDX-License-Identifier: Apache-2.0
#include "engine/cycle.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.hpp"
#include "core/scope.hpp"
#include "engine/context.hpp"
#include "engine/kinds_in_part.hpp"
#include "engine/ledger.hpp"
#include "engine/resource_budget.hpp"

namespace driftd::engine {
namespace {

std::string metadata(const core::Observation& observation, const char* key) {
  const auto found = observation.metadata.find(key);
  return found == observation.metadata.end() ? std::string() : found->second;
}

std::uint64_t number(const std::string& text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

std::string sentence(const core::Diagnostic& d) {
  std::string out = std::string(render(d.code)) + ": " + d.text;
  if (!d.right.empty()) out += " (grant " + d.right + ")";
  return out;
}

Cycle::Cycle(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session, std::uint32_t run)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session),
      run_(run),
      began_(Moment::of(context_->clock)) {}

Task<CycleReport> Cycle::run(std::string cursor, std::chrono::milliseconds deadline, bool digests) {
  core::RefreshRequest request;
  request.full = cursor.empty();
  const bool full = request.full;
  // What is listed makes other rows than those that the cursor of an earlier list stands for. It may end without one.
  std::string before = std::exchange(ledger_.row().cursor, {});
  request.cursor = std::move(cursor);
  request.deadline = deadline;
  auto whole = ledger_.to_read_whole();
  request.digests = digests && whole;
  if (request.digests) request.whole = std::move(*whole);
  auto handler = [this](core::RecordPage page) { return process_page(std::move(page)); };
  const auto outcome = co_await session_.refresh(std::move(request), handler);
  if (needs_records_)
    co_return report(fail(outcome ? Error{Code::unavailable, "records came as digests alone"} : outcome.error()));
  if (outcome && outcome->unchanged) {
    ledger_.row().cursor = std::move(before);
    CycleReport out = report(Status{});
    out.unchanged = true;
    out.next = outcome->next;
    co_return out;
  }
  Status status;
  if (!outcome) status = fail(outcome.error());
  close_kinds(status);
  const Status deletions = co_await confirm_missing();
  if (status && !deletions) status = deletions;
  const Status established = co_await establish(status.has_value());
  if (status && !established) status = established;
  if (full && status) status = co_await withdraw_unmentioned();
  const Status stale = co_await mark_stale();
  if (status && !stale) status = stale;
  const Status remembered = co_await save_serial();
  if (status && !remembered) status = remembered;
  CycleReport out = report(status);
  if (outcome) out.next = outcome->next;
  co_return out;
}

void Cycle::note_diagnostics(const std::vector<core::Diagnostic>& diagnostics) {
  for (const auto& d : diagnostics) {
    if (d.code == Code::not_found) continue;
    if (d.kind.empty()) {
      add_once(general_, sentence(d));
    } else if (d.kind == core::kRegistration && d.backend.empty() && d.id.empty() && !d.path.empty()) {
      // This concerns everything defined in that namespace. The lists of other namespaces are not less complete.
      Kind* of_place = foreign(place_line(d.path), d.kind);
      if (of_place == nullptr) continue;
      of_place->complete = true;
      add_once(of_place->reasons, sentence(d));
    } else if (d.backend.empty()) {
      Kind& kind = kinds_[d.kind];
      kind.withheld = kind.withheld || (d.id.empty() && (d.code == Code::denied || d.code == Code::unsupported));
      add_once(kind.reasons, sentence(d));
    } else if (Kind* of = foreign(d.backend, d.kind); of != nullptr) {
      add_once(of->reasons, sentence(d));
    }
  }
}

bool Cycle::applied_state(const core::Observation& observation) {
  const std::string serial = metadata(observation, "serial");
  const std::string lineage = metadata(observation, "lineage");
  if (serial.empty() || lineage.empty()) return false;
  serial_ = serial;
  lineage_ = lineage;
  const auto& notes = ledger_.row().notes;
  const auto known_serial = notes.find("serial");
  const auto known_lineage = notes.find("lineage");
  return known_serial != notes.end() && known_lineage != notes.end() && known_lineage->second == lineage &&
         number(serial) > number(known_serial->second);
}

std::vector<ResourceReading> Cycle::to_readings(std::vector<core::Observation> records, const Moment& began) const {
  const Moment now = Moment::of(context_->clock);
  std::vector<ResourceReading> out;
  for (auto& record : records) {
    const Moment::Mono asked = Moment::asked_at(record.observed_ns, began, now);
    core::ResourceId id = record.id;
    out.push_back({std::move(id), core::Present{std::move(record), {}}, asked});
  }
  return out;
}

bool Cycle::is_unknown(const core::ResourceId& id) const {
  const Index::Entry* entry = ledger_.index().find(id);
  return entry != nullptr && entry->unknown;
}

std::vector<std::pair<core::ResourceId, bool>> Cycle::unknown_now(const std::vector<ResourceReading>& readings) const {
  std::vector<std::pair<core::ResourceId, bool>> out;
  for (const auto& reading : readings) out.emplace_back(reading.id, is_unknown(reading.id));
  return out;
}

/// Every record must be a resource that exists.
Task<Status> Cycle::judge_records(std::vector<ResourceReading> records, CommitExtras extras) {
  std::vector<ResourceReading> fresh;
  for (auto& one : last_of_each(std::move(records))) {
    const auto& record = std::get<core::Present>(one.outcome).observation;
    if (!ledger_.scope().wants(record.id)) continue;
    const bool settled = ledger_.settle(record, run_, one.asked);
    settled_ += settled ? 1 : 0;
    if (settled && is_unknown(record.id)) {
      Kind& kind = kinds_[record.id.kind];
      ++kind.unknown;
      for (const auto& unread : record.unread) add_once(kind.reasons, unread.path + ": " + unread.reason);
    }
    if (settled) continue;
    if (record.digest_only) {
      needs_records_ = true;
      co_return fail(Code::unavailable, render(record.id) + " came as a digest alone, and must be judged");
    }
    applied_ = applied_ || applied_state(record);
    fresh.push_back(std::move(one));
  }
  auto room = co_await admit(context_, ledger_, std::move(fresh));
  if (!room) co_return fail(room.error());
  for (const auto& [kind, count] : room->left_out) {
    add_once(kinds_[kind].reasons, no_room(ledger_, kind));
    kinds_[kind].unknown += count;
    kinds_[kind].left_out += count;
    left_out_ = true;
  }
  if (room->admitted.empty() && extras.empty()) co_return Status{};
  const auto known = unknown_now(in_watch_ ? room->admitted : std::vector<ResourceReading>());
  const auto applied = co_await ledger_.apply(std::move(room->admitted), std::move(extras), applied_, run_, &session_);
  if (!applied) co_return fail(applied.error());
  for (const auto& [id, unknown] : known) list_again_ = list_again_ || is_unknown(id) != unknown;
  transitions_ += applied->transitions;
  dropped_ += applied->dropped;
  unsettled_ += applied->unsettled;
  for (const auto& [id, unknown] : applied->unknown) {
    Kind& kind = kinds_[id.kind];
    ++kind.unknown;
    add_once(kind.reasons, unknown.front().path + ": " + unknown.front().reason);
  }
  co_return Status{};
}

Task<Status> Cycle::process_page(core::RecordPage page) {
  note_diagnostics(page.diagnostics);
  std::vector<core::Observation> own;
  CommitExtras extras;
  for (auto& record : page.records) {
    ++received_;
    if (!record.backend.empty()) {
      add_declaration(std::move(record), extras);
      continue;
    }
    if (serial_.empty()) applied_ = applied_state(record) || applied_;  // even if no resource of this page changed
    ++kinds_[record.id.kind].received;
    own.push_back(std::move(record));
  }
  for (const auto& mark : page.marks) {
    // A cursor is not kept after a record was dropped or unsettled: "unchanged since then" would hide that record.
    if (mark.type == core::Mark::Type::checkpoint && dropped() + unsettled_ == 0) extras.cursor = mark.cursor;
    if (mark.type != core::Mark::Type::complete) continue;
    if (!mark.backend.empty()) {
      complete_declared(mark, extras);
      continue;
    }
    Kind& kind = kinds_[mark.kind];
    if (mark.count != kind.received) {
      add_once(kind.reasons, "corrupt: COMPLETE says " + std::to_string(mark.count) + " resources, " +
                                 std::to_string(kind.received) + " arrived");
      continue;
    }
    kind.complete = true;
  }
  DRIFTD_CO_CHECK(co_await judge_records(to_readings(std::move(own), began_), std::move(extras)));
  pass_on_reports();
  co_return Status{};
}

void Cycle::close_kinds(const Status& status) {
  if (ledger_.info() != nullptr) {
    for (const auto& kind : ledger_.info()->kinds) kinds_.try_emplace(kind);
  }
  std::erase_if(kinds_, [this](const auto& item) {
    const bool only_reported = item.first == core::kRegistration &&  // only sent for other backends
                               !item.second.complete && item.second.received == 0 && item.second.reasons.empty();
    return only_reported || !ledger_.scope().wants_kind(item.first);
  });
  if (!status) {
    const std::string reason = std::string(render(status.error().code)) + ": " + status.error().message;
    if (general_.empty()) general_.push_back(reason);
  }
  for (auto& [name, kind] : kinds_) {
    if (const std::string lost = lost_schemas_reason(ledger_.row().notes, name); !lost.empty())
      add_once(kind.reasons, lost);
    if (kind.complete) continue;
    for (const auto& reason : general_) add_once(kind.reasons, reason);
    if (kind.reasons.empty()) kind.reasons.emplace_back(kIncompleteReason);
  }
}

/// A kind has its baseline once it was listed completely and the resources of an earlier, shorter list are confirmed to
/// be gone. From then on a declared resource that the list lacks is missing. If it was listed in part and will not be
/// whole by itself, what was read is judged from now on (semantics 6). `listed`: the run came to its end.
Task<Status> Cycle::establish(bool listed) {
  CommitExtras extras;
  for (const auto& [name, kind] : kinds_) {
    if (ledger_.established(name)) continue;
    const InPart was = in_part(ledger_.row(), name);
    InPart now = was;
    if (kind.complete)
      now = kind.left_out > 0 ? InPart::over_budget : InPart::no;
    else if (listed && kind.withheld && kind.received > 0)
      now = InPart::withheld;
    if (kind.complete && now == InPart::no) extras.established.push_back(name);
    if (now == was) continue;
    if (!extras.row) extras.row = ledger_.row();
    note_in_part(*extras.row, name, now);
  }
  if (extras.established.empty() && !extras.row) co_return Status{};
  const std::vector<std::string> fresh = extras.established;
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  for (const auto& name : fresh) {
    DRIFTD_CO_CHECK(co_await confirm_declared_absent(name));
  }
  co_return Status{};
}

Task<Status> Cycle::mark_stale() {
  auto counts = ledger_.index().counts(run_);
  for (auto& [name, kind] : kinds_) {
    if (kind.complete && kind.reasons.empty()) continue;
    if (counts[name].open_unseen == 0) continue;
    const std::string reason = kind.reasons.empty() ? "not seen" : kind.reasons.front();
    DRIFTD_CO_TRY(const auto ids, co_await ledger_.missing(name, run_, true));
    std::vector<ResourceReading> unsure;
    const Moment now = Moment::of(context_->clock);
    for (const auto& id : ids) unsure.push_back({id, core::Unknown{reason, now.wall}, now.mono});
    CommitExtras none;
    const auto applied = co_await ledger_.apply(std::move(unsure), std::move(none), applied_, run_, nullptr);
    if (!applied) co_return fail(applied.error());
    transitions_ += applied->transitions;
  }
  co_return Status{};
}

Task<Status> Cycle::save_serial() {
  const bool whole = std::all_of(kinds_.begin(), kinds_.end(),
                                 [](const auto& k) { return k.second.complete && k.second.left_out == 0; });
  auto& notes = ledger_.row().notes;
  if (serial_.empty() || !whole || (notes["serial"] == serial_ && notes["lineage"] == lineage_)) co_return Status{};
  CommitExtras extras;
  extras.row = ledger_.row();
  extras.row->notes["serial"] = serial_;
  extras.row->notes["lineage"] = lineage_;
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  co_return status;
}

CycleReport Cycle::report(Status status) const {
  CycleReport out;
  out.status = std::move(status);
  out.received = received_;
  out.settled = settled_;
  out.transitions = transitions_;
  for (const auto& [name, kind] : kinds_) {
    core::Coverage coverage;
    coverage.kind = name;
    coverage.established = ledger_.established(name);
    coverage.complete = kind.complete;
    coverage.resources = static_cast<std::int64_t>(kind.received);
    coverage.unknown = static_cast<std::int64_t>(kind.unknown);
    coverage.reasons = kind.reasons;
    if (!kind.complete && ledger_.partial(name)) coverage.reasons.emplace_back(kInPartReason);
    out.coverage.push_back(std::move(coverage));
  }
  out.registrations = foreign_.registrations();
  if (const auto own = kinds_.find(std::string(core::kRegistration)); own != kinds_.end()) {
    const Kind& kind = own->second;
    out.registrations.lines[own->first] = {kind.complete, kind.reasons.empty() ? std::string() : kind.reasons.front()};
  }
  foreign_.add_lines(out.coverage);
  return out;
}

}  // namespace driftd::engine
