// SPDX-License-Identifier: Apache-2.0
// `GET /v1/queue`: what waits for a decision or for a sink.
#include <algorithm>

#include "admin/api.hpp"
#include "admin/json.hpp"

namespace driftd::admin {

using core::Value;
using Answer = Result<Value>;

Task<Answer> Api::queue() {
  const auto sink_totals = co_await deps_.reader.sink_totals();
  if (!sink_totals) co_return fail(sink_totals.error());
  Value notifications = Value(Value::Array());
  if (deps_.notifications) {
    DRIFTD_CO_TRY(notifications, co_await deps_.notifications());
  }
  core::Reader::Count pending;
  pending.of = core::Reader::Count::Of::drifts;
  pending.filter.status = core::DriftStatus::pending;
  DRIFTD_CO_TRY(const std::int64_t counted, co_await deps_.reader.count(pending));
  const auto listed = static_cast<std::int64_t>(notifications.array()->size());
  const auto view = deps_.control.view();
  co_return Value::Object{{"notifications", notifications},
                          {"notifications_total", number(std::max(counted, listed))},
                          {"notifications_truncated", Value(counted > listed)},
                          {"sinks", list_of(view.sinks)},
                          {"books", list_of(*sink_totals)},
                          {"judged", to_json(deps_.metrics.judged())},
                          {"backlog_events", number(view.backlog_events)},
                          {"backlog_bytes", number(view.backlog_bytes)}};
}

}  // namespace driftd::admin
