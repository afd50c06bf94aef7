// SPDX-License-Identifier: Apache-2.0
// Lists: their rows, how many more there are, and filters that match nothing.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <set>
#include <utility>

#include "admin/fields.hpp"
#include "admin/json.hpp"
#include "admin/query.hpp"
#include "core/scope.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;
using Text = Result<std::string>;
using Count = core::Reader::Count;
using Names = std::set<std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kMaxRows = 10'000;
constexpr std::int64_t kFewRows = 1'000;          ///< rows of a list that does not wait for other lists
constexpr std::size_t kMaxRowBytes = 16u << 20;   ///< bytes of the rows of one answer
constexpr std::size_t kUncutBytes = 1u << 20;     ///< a shorter answer was not cut by kMaxRowBytes
constexpr std::size_t kLargeAnswer = 256u << 10;  ///< bytes
constexpr milliseconds kFollowStep{100};          ///< time between two looks for new events
constexpr std::size_t kRefLength = 12;            ///< characters of a binding after the @ of a reference

bool is_glob(const std::string& text) { return text.find('*') != std::string::npos; }

/// Returns `a, b, c`, with twenty names at most.
std::string render_names(const Names& names) {
  std::string out;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (++count > 20) return out + ", … (" + std::to_string(names.size()) + ")";
    out += (out.empty() ? "" : ", ") + name;
  }
  return out.empty() ? "none" : out;
}

/// Returns `not_found` if a name is not one of `known`. A glob and an empty name pass.
Status check_name(const std::string& what, const std::string& name, const Names& known) {
  if (name.empty() || is_glob(name) || known.contains(name)) return {};
  return fail(Code::not_found, "there is no " + what + " '" + name + "'; known: " + render_names(known));
}

/// Returns the kinds of the matching backends: the pseudo-kinds and those of their coverage. `complete` becomes
/// false if the coverage of one has not been read yet.
Names kinds_of(const core::AgentView& view, const std::string& backend, bool& complete) {
  Names out(core::kOwnKinds.begin(), core::kOwnKinds.end());
  out.emplace(core::kRegistration);
  for (const auto& one : view.backends) {
    if (!backend.empty() && !is_glob(backend) && one.name != backend) continue;
    if (one.coverage.empty()) complete = false;  // the backend has not been read yet
    for (const auto& kind : one.coverage) out.insert(kind.kind);
  }
  return out;
}

Names sinks_of(const core::AgentView& view, const std::vector<core::SinkTotals>& sink_totals) {
  Names out;
  for (const auto& sink : view.sinks) out.insert(sink.name);
  for (const auto& totals : sink_totals) out.insert(totals.sink);  // closed sinks keep their dead letters
  return out;
}

/// Returns `[row,row]`, where `shown` makes the value of a row. Empties each row once its text is made: a row takes ten
/// times the memory of its text, and ten thousand of both would be too much.
template <class T, class Show>
std::string array_of(std::vector<T>& all, Show shown) {
  constexpr std::size_t kSample = 64;
  std::string out = "[";
  for (std::size_t i = 0; i < all.size(); ++i) {
    // otherwise the string doubles with a copy each time
    if (i == kSample) out.reserve(out.size() / kSample * all.size() * 9 / 8);
    const T one = std::exchange(all[i], T());
    if (i > 0) out += ',';
    out += core::render(shown(one));
  }
  out += ']';
  return out;
}
template <class T>
std::string array_of(std::vector<T>& all) {
  return array_of(all, [](const T& one) { return to_json(one); });
}

/// Runs array_of() on the render executor instead of the core thread.
template <class T>
Task<std::string> rendered(asio::any_io_executor render_executor, std::vector<T> rows) {
  const auto all = std::make_shared<std::vector<T>>(std::move(rows));
  auto work = [all] { return array_of(*all); };
  if (!render_executor) co_return work();
  auto text = co_await run_on(std::move(render_executor), std::move(work));
  co_return text;
}

/// Rows as text, up to kMaxRowBytes. The first row is taken however large it is.
struct Rows {
  explicit Rows(std::shared_ptr<MemoryShare> given) : share(std::move(given)) {}
  std::shared_ptr<MemoryShare> share;
  std::string text = "[";
  std::size_t count = 0;
  bool no_room = false;  ///< the memory for all answers is used up
  bool add(const Value& row) {
    const std::string one = core::render(row);
    if (count > 0 && text.size() + one.size() > kMaxRowBytes) return false;
    no_room = share != nullptr && !share->resize(text.size() + one.size());
    if (no_room) {
      text = {};
      return false;
    }
    if (count++ > 0) text += ',';
    text += one;
    return true;
  }
};

/// Parses a parameter that is `true` or `false`; false if it was not given.
Result<bool> parse_flag(const Request& request, const std::string& name) {
  const std::string text = query_parameter(request, name);
  if (text.empty() || text == "false") return false;
  if (text == "true") return true;
  return fail(Code::invalid, name + ": expected true or false, found '" + text + "'");
}

Result<Depth> depth_of(const Request& request) {
  DRIFTD_TRY(const bool whole, parse_flag(request, "whole"));
  return whole ? Depth::whole : Depth::brief;
}

/// Returns remarks on globs that matched nothing.
Value notes_of(const std::vector<std::pair<std::string, std::string>>& filters) {
  Value::Array out;
  for (const auto& [what, pattern] : filters) {
    if (is_glob(pattern)) out.emplace_back("nothing was found for " + what + " '" + pattern + "'");
  }
  return Value(std::move(out));
}

Result<core::DriftFilter> drift_filter(const Request& request) {
  core::DriftFilter filter;
  DRIFTD_CHECK(check_parameters(request, {"backend", "kind", "id", "status", "all", "limit", "drift", "whole"}));
  filter.backend = query_parameter(request, "backend");
  filter.kind = query_parameter(request, "kind");
  filter.id = query_parameter(request, "id");
  filter.drift = query_parameter(request, "drift");
  DRIFTD_TRY(filter.all, parse_flag(request, "all"));
  if (const auto status = query_parameter(request, "status"); !status.empty()) {
    auto parsed = core::parse_drift_status(status);
    if (!parsed) return fail(Code::invalid, parsed.error().message);
    filter.status = *parsed;
  }
  DRIFTD_TRY(const std::int64_t limit, parse_number("limit", query_parameter(request, "limit"), 1000, 1, kMaxRows));
  filter.limit = static_cast<int>(limit);
  return filter;
}

}  // namespace

Value Api::shown_drift(const core::Drift& drift, Depth depth) {
  Value out = to_json(drift, depth);
  const std::string binding = deps_.control.binding(drift);
  out.object()->insert_or_assign("digest", binding);
  if (drift.open()) out.object()->insert_or_assign("ref", drift.id + "@" + binding.substr(0, kRefLength));
  return out;
}

Value Api::shown_row(const core::DriftRow& row, Depth depth) {
  Value out = shown_drift(row.drift, depth);
  out.object()->insert_or_assign("backend", row.backend);
  return out;
}

void Api::sent(std::size_t bytes) const {
  if (bytes >= kLargeAnswer && deps_.release_memory) deps_.release_memory();
}

Task<AsyncMutex::Guard> Api::large_list_turn(std::int64_t limit) {
  if (limit <= kFewRows) co_return AsyncMutex::Guard();
  AsyncMutex::Guard held = co_await large_.lock();
  co_return held;
}

Task<Text> Api::lists(Request request) {
  const std::string path = request.path;
  if (path == "/v1/resources") co_return co_await resources(std::move(request));
  if (path == "/v1/drifts") co_return co_await drifts(std::move(request));
  if (path == "/v1/events") co_return co_await events(std::move(request));
  if (path == "/v1/deadletters") co_return co_await dead_letters(std::move(request));
  co_return co_await audit(std::move(request));
}

Task<Text> Api::list(ListContent listed) {
  std::int64_t total = static_cast<std::int64_t>(listed.count);
  if (listed.ended || total >= listed.limit || listed.rows.size() >= kUncutBytes) {
    DRIFTD_CO_TRY(const std::int64_t counted, co_await deps_.reader.count(std::move(listed.all)));
    total = std::max(total, counted);  // rows may have been added between reading and counting
  }
  const bool truncated = total > static_cast<std::int64_t>(listed.count);
  const bool full = truncated && static_cast<std::int64_t>(listed.count) < listed.limit;
  std::string out = std::move(listed.rows);
  out.insert(0, "{\"" + listed.name + "\":");
  if (listed.notes.array() != nullptr) out += ",\"notes\":" + core::render(listed.notes);
  out += ",\"total\":" + std::to_string(total) + ",\"truncated\":" + (truncated ? "true" : "false");
  if (full) out += ",\"limited_by\":\"bytes\"";
  out += "}\n";
  co_return out;
}

Task<Status> Api::check_names(core::DriftFilter filter) {
  const core::AgentView view = deps_.control.view();
  Names backends;
  for (const auto& one : view.backends) backends.insert(one.name);
  DRIFTD_CO_CHECK(check_name("backend", filter.backend, backends));
  Count same;
  same.of = Count::Of::resources;
  same.filter.backend = filter.backend;
  same.filter.kind = filter.kind;
  bool complete = true;
  const Names kinds = kinds_of(view, filter.backend, complete);
  if (complete && !filter.kind.empty() && !is_glob(filter.kind) && !kinds.contains(filter.kind)) {
    DRIFTD_CO_TRY(const std::int64_t stored, co_await deps_.reader.count(same));
    if (stored == 0) co_return check_name("kind", filter.kind, kinds);
  }
  if (filter.id.empty() || is_glob(filter.id)) co_return Status{};
  same.filter.id = filter.id;
  DRIFTD_CO_TRY(const std::int64_t stored, co_await deps_.reader.count(same));
  if (stored > 0) co_return Status{};
  Count past = same;
  past.of = Count::Of::drifts;
  past.filter.all = true;
  DRIFTD_CO_TRY(const std::int64_t drifts, co_await deps_.reader.count(past));
  if (drifts > 0) co_return Status{};
  co_return fail(Code::not_found,
                 "there is no resource with id '" + filter.id + "'; `driftd resources` lists those that are known");
}

Task<Status> Api::check_sink(std::string name) {
  DRIFTD_CO_TRY(const auto sink_totals, co_await deps_.reader.sink_totals());
  co_return check_name("sink", name, sinks_of(deps_.control.view(), sink_totals));
}

Task<Text> Api::resources(Request request) {
  DRIFTD_CO_CHECK(check_parameters(request, {"backend", "kind", "id", "limit", "whole"}));
  ListContent listed{.name = "resources"};
  DRIFTD_CO_TRY(listed.limit, parse_number("limit", query_parameter(request, "limit"), 1000, 1, kMaxRows));
  core::DriftFilter filter;
  filter.backend = query_parameter(request, "backend");
  filter.kind = query_parameter(request, "kind");
  filter.id = query_parameter(request, "id");
  filter.limit = static_cast<int>(listed.limit);
  DRIFTD_CO_TRY(const Depth depth, depth_of(request));
  DRIFTD_CO_CHECK(co_await check_names(filter));
  const AsyncMutex::Guard turn = co_await large_list_turn(listed.limit);
  const auto rows = std::make_shared<Rows>(request.share);
  core::Reader::RowHandler<core::ResourceRow> take = [rows, depth](core::ResourceRow row) {
    return rows->add(to_json(row, depth));
  };
  DRIFTD_CO_TRY(listed.ended, co_await deps_.reader.each_resource(filter, std::move(take)));
  if (rows->no_room) co_return fail(memory_limit_error(*rows->share));
  if (rows->count == 0)
    listed.notes = notes_of({{"backend", filter.backend}, {"kind", filter.kind}, {"id", filter.id}});
  listed.count = rows->count;
  listed.rows = std::move(rows->text) + "]";
  listed.all.of = Count::Of::resources;
  listed.all.filter = std::move(filter);
  co_return co_await list(std::move(listed));
}

Task<Text> Api::drifts(Request request) {
  DRIFTD_CO_TRY(core::DriftFilter filter, drift_filter(request));
  DRIFTD_CO_TRY(Depth depth, depth_of(request));
  if (!filter.drift.empty()) depth = Depth::whole;
  DRIFTD_CO_CHECK(co_await check_names(filter));
  ListContent listed{.name = "drifts", .limit = filter.limit};
  const AsyncMutex::Guard turn = co_await large_list_turn(listed.limit);
  const auto rows = std::make_shared<Rows>(request.share);
  // binding() may run outside of the core thread: it depends only on the store's key, which never changes in a process.
  core::Reader::RowHandler<core::DriftRow> take = [this, rows, depth, held = holds()](core::DriftRow row) {
    Value shown = shown_row(row, depth);
    if (const auto hold = held.find(row.drift.id); hold != held.end() && row.drift.open())
      shown.object()->insert_or_assign("held", hold->second);
    return rows->add(std::move(shown));
  };
  DRIFTD_CO_TRY(listed.ended, co_await deps_.reader.each_drift(filter, std::move(take)));
  if (rows->no_room) co_return fail(memory_limit_error(*rows->share));
  if (rows->count == 0)
    listed.notes = notes_of({{"backend", filter.backend}, {"kind", filter.kind}, {"id", filter.id}});
  listed.count = rows->count;
  listed.rows = std::move(rows->text) + "]";
  listed.all.of = Count::Of::drifts;
  listed.all.filter = std::move(filter);
  co_return co_await list(std::move(listed));
}

Task<Text> Api::events(Request request) {
  DRIFTD_CO_CHECK(check_parameters(request, {"after", "limit", "wait"}));
  ListContent listed{.name = "events"};
  DRIFTD_CO_TRY(listed.limit, parse_number("limit", query_parameter(request, "limit"), 100, 1, 1000));
  DRIFTD_CO_TRY(const std::int64_t after, parse_number("after", query_parameter(request, "after"), -1, 0, INT64_MAX));
  DRIFTD_CO_TRY(const std::int64_t wait, parse_number("wait", query_parameter(request, "wait"), 0, 0, 30));
  const int limit = static_cast<int>(listed.limit);
  listed.all.of = Count::Of::events;
  listed.all.after = after;
  if (after < 0) {
    auto last = co_await deps_.reader.last_events(limit);
    if (!last) co_return fail(last.error());
    listed.count = last->size();
    listed.rows = co_await rendered(deps_.render_executor, std::move(*last));
    co_return co_await list(std::move(listed));
  }
  const auto until = std::chrono::steady_clock::now() + seconds(wait);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (;;) {
    auto found = co_await deps_.reader.events(after, limit);
    if (!found) co_return fail(found.error());
    if (!found->empty() || stopping_ || std::chrono::steady_clock::now() >= until) {
      listed.count = found->size();
      listed.rows = co_await rendered(deps_.render_executor, std::move(*found));
      co_return co_await list(std::move(listed));
    }
    timer.expires_after(kFollowStep);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

Task<Text> Api::dead_letters(Request request) {
  DRIFTD_CO_CHECK(check_parameters(request, {"sink", "limit"}));
  ListContent listed{.name = "dead_letters"};
  DRIFTD_CO_TRY(listed.limit, parse_number("limit", query_parameter(request, "limit"), 100, 1, 1000));
  const std::string sink = query_parameter(request, "sink");
  DRIFTD_CO_CHECK(co_await check_sink(sink));
  auto letters = co_await deps_.reader.dead_letters(sink, static_cast<int>(listed.limit));
  if (!letters) co_return fail(letters.error());
  listed.count = letters->size();
  listed.rows = co_await rendered(deps_.render_executor, std::move(*letters));
  if (listed.count == 0) listed.notes = notes_of({{"sink", sink}});
  listed.all.of = Count::Of::dead_letters;
  listed.all.filter.backend = sink;
  co_return co_await list(std::move(listed));
}

Task<Text> Api::audit(Request request) {
  DRIFTD_CO_CHECK(check_parameters(request, {"limit", "after", "wait"}));
  ListContent listed{.name = "audit"};
  DRIFTD_CO_TRY(listed.limit, parse_number("limit", query_parameter(request, "limit"), 100, 1, kMaxRows));
  DRIFTD_CO_TRY(const std::int64_t after, parse_number("after", query_parameter(request, "after"), -1, 0, INT64_MAX));
  DRIFTD_CO_TRY(const std::int64_t wait, parse_number("wait", query_parameter(request, "wait"), 0, 0, 30));
  const auto until = std::chrono::steady_clock::now() + seconds(wait);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (;;) {
    {
      const AsyncMutex::Guard turn = co_await large_list_turn(listed.limit);
      Result<std::vector<core::AuditRow>> rows;
      if (after < 0) {
        rows = co_await deps_.reader.audit(static_cast<int>(listed.limit));
      } else {
        rows = co_await deps_.reader.audit_after(after, static_cast<int>(listed.limit));
      }
      if (!rows) co_return fail(rows.error());
      if (!rows->empty() || after < 0 || stopping_ || std::chrono::steady_clock::now() >= until) {
        listed.count = rows->size();
        listed.rows = co_await rendered(deps_.render_executor, std::move(*rows));
        listed.all = {Count::Of::audit, {}, std::max<std::int64_t>(after, 0)};
        co_return co_await list(std::move(listed));
      }
    }
    timer.expires_after(kFollowStep);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace driftd::admin
