// SPDX-License-Identifier: Apache-2.0
#include "engine/cycle.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>

#include "base/log.hpp"
#include "core/scope.hpp"
#include "core/stand_in.hpp"
#include "engine/room.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kReadAtOnce = 256;
constexpr std::chrono::seconds kReadDeadline{30};

std::string sentence(const core::Diagnostic& d) {
  std::string out = std::string(render(d.code)) + ": " + d.text;
  if (!d.right.empty()) out += " (grant " + d.right + ")";
  return out;
}

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

bool CycleReport::complete() const {
  return status.has_value() &&
         std::all_of(coverage.begin(), coverage.end(),
                     [](const auto& c) { return c.complete || core::state_of(c) == "unsupported"; });
}

Cycle::Cycle(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session, std::uint32_t run)
    : context_(std::move(context)), ledger_(ledger), session_(session), run_(run),
      began_(Moment::of(context_->clock)) {}

Task<CycleReport> Cycle::run(std::string cursor, std::chrono::milliseconds deadline) {
  core::RefreshRequest request;
  request.full = cursor.empty();
  const bool full = request.full;
  request.cursor = std::move(cursor);
  request.deadline = deadline;
  auto handler = [this](core::RecordPage page) { return take(std::move(page)); };
  const auto outcome = co_await session_.refresh(std::move(request), handler);
  if (outcome && outcome->unchanged) {
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
  const Status established = co_await establish();
  if (status && !established) status = established;
  if (full && status) status = co_await withdraw_unmentioned();
  const Status stale = co_await stale_open();
  if (status && !stale) status = stale;
  const Status remembered = co_await remember_serial();
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
      Kind* of_place = foreign(place_line(d.path), d.kind);  // of all that is defined there: nobody else's list is less whole
      if (of_place == nullptr) continue;
      of_place->complete = true;
      add_once(of_place->reasons, sentence(d));
    } else if (d.backend.empty()) {
      add_once(kinds_[d.kind].reasons, sentence(d));
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

std::vector<Sighted> Cycle::sighted(std::vector<core::Observation> records, const Moment& began) const {
  const Moment now = Moment::of(context_->clock);
  std::vector<Sighted> out;
  for (auto& record : records) {
    const Moment::Mono asked = Moment::asked_at(record.observed_ns, began, now);
    core::ResourceId id = record.id;
    out.push_back({std::move(id), core::Seen{std::move(record), {}}, asked});
  }
  return out;
}

/// Each of them is Seen.
Task<Status> Cycle::judge_records(std::vector<Sighted> records, Extras extras) {
  std::vector<Sighted> fresh;
  for (auto& one : last_of_each(std::move(records))) {
    const auto& record = std::get<core::Seen>(one.sighting).observation;
    if (!ledger_.scope().wants(record.id)) continue;
    const bool settled = ledger_.settle(record, run_, one.asked);
    settled_ += settled ? 1 : 0;
    if (settled && ledger_.index().find(record.id)->unknown) ++kinds_[record.id.kind].unknown;
    if (settled) continue;
    applied_ = applied_ || applied_state(record);
    fresh.push_back(std::move(one));
  }
  auto room = co_await with_room(context_, ledger_, std::move(fresh));
  if (!room) co_return fail(room.error());
  for (const auto& [kind, count] : room->left_out) {
    add_once(kinds_[kind].reasons, no_room(ledger_));
    kinds_[kind].unknown += count;
    crowded_out_ += count;
    extras.cursor.reset();
    extras.watch_cursor.reset();
  }
  if (room->taken.empty() && extras.empty()) co_return Status{};
  const auto applied = co_await ledger_.apply(std::move(room->taken), std::move(extras), applied_, run_, &session_);
  if (!applied) co_return fail(applied.error());
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

Task<Status> Cycle::take(core::RecordPage page) {
  note_diagnostics(page.diagnostics);
  std::vector<core::Observation> own;
  Extras extras;
  for (auto& record : page.records) {
    ++received_;
    if (!record.backend.empty()) {
      take_declared(record, extras);
      continue;
    }
    if (serial_.empty()) applied_ = applied_state(record) || applied_;  // also when all that is left says nothing new
    ++kinds_[record.id.kind].received;
    own.push_back(std::move(record));
  }
  for (const auto& mark : page.marks) {
    // Not after a record was dropped or could not be settled: "unchanged since then" would hide what that record said.
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
  const auto status = co_await judge_records(sighted(std::move(own), began_), std::move(extras));
  co_return status;
}

void Cycle::close_kinds(const Status& status) {
  if (ledger_.info() != nullptr) {
    for (const auto& kind : ledger_.info()->kinds) kinds_.try_emplace(kind);
  }
  std::erase_if(kinds_, [this](const auto& item) {
    const bool spoken = item.first == core::kRegistration &&  // a source lists it for other backends
                        !item.second.complete && item.second.received == 0 && item.second.reasons.empty();
    return spoken || !ledger_.scope().wants_kind(item.first);
  });
  if (!status) {
    const std::string reason = std::string(render(status.error().code)) + ": " + status.error().message;
    if (general_.empty()) general_.push_back(reason);
  }
  for (auto& [name, kind] : kinds_) {
    if (const std::string lost = given_up(ledger_.row().notes, name); !lost.empty()) add_once(kind.reasons, lost);
    if (kind.complete) continue;
    for (const auto& reason : general_) add_once(kind.reasons, reason);
    if (kind.reasons.empty()) kind.reasons.emplace_back(kNotWhole);
  }
}

Task<Status> Cycle::confirm_missing() {
  auto counts = ledger_.index().counts(run_);  // what is seen from now on is missing no more, and nothing else moves
  for (auto& [name, kind] : kinds_) {
    if (!kind.complete) continue;
    const auto status = co_await hold_or_confirm(name, counts[name].missing > 0);
    if (!status) co_return status;
  }
  co_return Status{};
}

Task<Status> Cycle::hold_or_confirm(std::string kind, bool some_missing) {
  Index::Count count;
  count.present = ledger_.index().present(kind);
  if (some_missing) count = ledger_.index().count(kind, run_);
  std::vector<core::ResourceId> gone, asked;
  if (count.missing > 0) {
    DRIFTD_CO_TRY(gone, co_await ledger_.missing(kind, run_, false));
    if (ledger_.accepts_unknown(kind)) DRIFTD_CO_CHECK(co_await ledger_.find_accepted(kind, gone));
  }
  const auto accepted = [this](const core::ResourceId& id) { return ledger_.accepted_by(id) != nullptr; };
  std::copy_if(gone.begin(), gone.end(), std::back_inserter(asked), std::not_fn(accepted));
  std::vector<std::string> held;
  std::size_t known = static_cast<std::size_t>(count.present);
  // Before the first complete list there is nothing that could be deleted: what is missing was never accepted.
  bool many = context_->asks_about_mass_deletions && ledger_.established(kind) && core::mass_deletion(known, asked.size());
  if (many) {  // of what came and went before anybody accepted it nobody is asked
    const std::size_t missing = asked.size();
    DRIFTD_CO_TRY(asked, co_await ledger_.with_baseline(std::move(asked)));
    known -= missing - asked.size();
    many = core::mass_deletion(known, asked.size());
  }
  if (many) {
    add_once(kinds_[kind].reasons, std::to_string(asked.size()) + " of " + std::to_string(known) +
                                       " gone at once: held until someone decides the drift of scope/" + kind);
    for (const auto& id : asked) held.push_back(id.id);
    const std::set<std::string> names(held.begin(), held.end());
    std::erase_if(gone, [&](const core::ResourceId& id) { return names.contains(id.id); });
  }
  std::vector<core::ResourceId> nameless;  // of them the list, which was complete, is the only word that there is
  std::copy_if(gone.begin(), gone.end(), std::back_inserter(nameless), core::is_stand_in);
  std::erase_if(gone, core::is_stand_in);
  if (!nameless.empty()) DRIFTD_CO_CHECK(co_await are_gone(std::move(nameless), Moment::of(context_->clock)));
  DRIFTD_CO_CHECK(co_await confirm(std::move(gone), &kinds_[kind]));
  DRIFTD_CO_TRY(const std::size_t asks, co_await ledger_.scope_drift(kind, std::move(held)));
  transitions_ += asks;
  DRIFTD_CO_CHECK(co_await look_again(kind));
  DRIFTD_CO_CHECK(co_await confirm_absent(kind));
  Extras done;  // of what was accepted only what is still missing stays so
  DRIFTD_CO_TRY(done.row, co_await ledger_.accepted_done(kind, run_));
  if (!done.row) co_return Status{};
  const auto status = co_await ledger_.commit_extras(std::move(done));
  co_return status;
}

/// Open drifts of what is gone: the list was complete, so they can be judged again where they must be.
Task<Status> Cycle::look_again(std::string kind) {
  const auto ids = ledger_.gone_to_judge(kind);
  if (ids.empty()) co_return Status{};
  std::vector<Sighted> gone;
  const Moment now = Moment::of(context_->clock);
  for (const auto& id : ids) gone.push_back({id, core::Gone{now.wall}, now.mono});
  Extras none;
  const auto applied = co_await ledger_.apply(std::move(gone), std::move(none), applied_, run_, nullptr);
  if (!applied) co_return fail(applied.error());
  transitions_ += applied->transitions;
  co_return Status{};
}

/// A kind has its baseline once it was listed whole and what an earlier, shorter list held is known to be gone. From then on
/// what a source declares and the list does not have is missing.
Task<Status> Cycle::establish() {
  Extras extras;
  for (const auto& [name, kind] : kinds_) {
    if (kind.complete && !ledger_.established(name)) extras.established.push_back(name);
  }
  if (extras.established.empty()) co_return Status{};
  const std::vector<std::string> fresh = extras.established;
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  for (const auto& name : fresh) {
    DRIFTD_CO_CHECK(co_await confirm_absent(name));
  }
  co_return Status{};
}

Task<Status> Cycle::confirm(std::vector<core::ResourceId> ids, Kind* kind) {
  for (std::size_t at = 0; at < ids.size(); at += kReadAtOnce) {
    const auto end = std::min(ids.size(), at + kReadAtOnce);
    std::vector<core::ResourceId> some(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                       ids.begin() + static_cast<std::ptrdiff_t>(end));
    const Moment sent = Moment::of(context_->clock);
    auto answer = co_await session_.read(std::move(some), kReadDeadline);
    if (!answer) {
      unconfirmed_ = true;
      add_once(kind->reasons, "a missing resource could not be confirmed: " + answer.error().message);
      co_return Status{};
    }
    for (const auto& d : answer->diagnostics) {
      if (d.code != Code::not_found) add_once(kind->reasons, sentence(d));
    }
    if (!answer->not_found.empty() && !(co_await is_the_same_system(kind))) co_return Status{};
    DRIFTD_CO_CHECK(co_await are_gone(std::move(answer->not_found), sent));
    Extras also_none;
    std::vector<Sighted> found = sighted(answer->found, sent);
    DRIFTD_CO_CHECK(co_await judge_records(std::move(found), std::move(also_none)));
  }
  co_return Status{};
}

/// Asked behind a read that found something gone: a failover may have put another system behind the endpoint since the cycle
/// began, and nothing is gone because another system does not have it.
Task<bool> Cycle::is_the_same_system(Kind* kind) {
  const std::string accepted = ledger_.row().system_identity;
  if (accepted.empty()) co_return true;
  const auto probed = co_await session_.health();
  if (probed && probed->system_identity == accepted) co_return true;
  unconfirmed_ = true;
  std::string says = "it does not say which one it is";
  if (!probed) says = probed.error().message;
  if (probed && !probed->system_identity.empty()) says = "it is " + probed->system_identity;
  add_once(kind->reasons, "a missing resource could not be confirmed: another system may have answered (accepted: " + accepted +
                              "; " + says + ")");
  co_return false;
}

Task<Status> Cycle::are_gone(std::vector<core::ResourceId> ids, Moment sent) {
  std::vector<Sighted> gone;
  for (const auto& id : ids) gone.push_back({id, core::Gone{sent.wall}, sent.mono});
  Extras none;
  const auto applied = co_await ledger_.apply(last_of_each(std::move(gone)), std::move(none), applied_, run_, &session_);
  if (!applied) co_return fail(applied.error());
  transitions_ += applied->transitions;
  dropped_ += applied->dropped;
  co_return Status{};
}

Task<Status> Cycle::stale_open() {
  auto counts = ledger_.index().counts(run_);
  for (auto& [name, kind] : kinds_) {
    if (kind.complete && kind.reasons.empty()) continue;
    if (counts[name].open_unseen == 0) continue;
    const std::string reason = kind.reasons.empty() ? "not seen" : kind.reasons.front();
    DRIFTD_CO_TRY(const auto ids, co_await ledger_.missing(name, run_, true));
    std::vector<Sighted> unsure;
    const Moment now = Moment::of(context_->clock);
    for (const auto& id : ids) unsure.push_back({id, core::Unsure{reason, now.wall}, now.mono});
    Extras none;
    const auto applied = co_await ledger_.apply(std::move(unsure), std::move(none), applied_, run_, nullptr);
    if (!applied) co_return fail(applied.error());
    transitions_ += applied->transitions;
  }
  co_return Status{};
}

Task<Status> Cycle::remember_serial() {
  const bool whole = std::all_of(kinds_.begin(), kinds_.end(), [](const auto& k) { return k.second.complete; });
  auto& notes = ledger_.row().notes;
  if (serial_.empty() || !whole || (notes["serial"] == serial_ && notes["lineage"] == lineage_)) co_return Status{};
  Extras extras;
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
    out.coverage.push_back(std::move(coverage));
  }
  out.spoken = foreign_.registrations();
  if (const auto own = kinds_.find(std::string(core::kRegistration)); own != kinds_.end()) {
    const Kind& kind = own->second;
    out.spoken.lines[own->first] = {kind.complete, kind.reasons.empty() ? std::string() : kind.reasons.front()};
  }
  foreign_.add_lines(out.coverage);
  return out;
}

}  // namespace driftd::engine
