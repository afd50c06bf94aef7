// SPDX-License-Identifier: Apache-2.0
// Plugins: which are installed, what they did, and resuming parked backends.
#include <algorithm>

#include "admin/api.hpp"
#include "admin/fields.hpp"
#include "admin/json.hpp"
#include "base/log.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;
using ScanResult = core::SessionFactory::ScanResult;

bool named(const ScanResult& found, const std::string& name) {
  if (found.file == name) return true;
  for (const auto& use : found.used_by) {
    if (use.backend == name) return true;
  }
  if (!found.info) {  // a file that does not load has no id: `acme` matches …/acme.so
    const std::string file = found.file.substr(found.file.rfind('/') + 1);
    return file == name || file == name + ".so";
  }
  const auto& info = **found.info;
  return info.id == name || std::find(info.types.begin(), info.types.end(), name) != info.types.end();
}

}  // namespace

Task<Answer> Api::plugins() {
  const auto found = co_await deps_.plugins();
  Value::Array missing;
  for (const auto& backend : deps_.control.view().backends) {
    if (backend.worker.state != "no plugin") continue;
    missing.push_back(
        Value::Object{{"backend", backend.name}, {"provider", backend.provider}, {"reason", backend.worker.last_exit}});
  }
  co_return Value::Object{{"plugins", list_of(found)}, {"missing", std::move(missing)}};
}

Task<Answer> Api::describe_plugin(Request request) {
  const auto asked = request.query.find("name");
  if (asked == request.query.end() || request.query.size() != 1) {
    co_return fail(Code::invalid, "one query parameter 'name': a plugin's id, type or file, or a backend");
  }
  const auto all = co_await deps_.plugins();
  std::string known;
  for (const auto& found : all) {
    if (named(found, asked->second)) co_return described(found);
    known += (known.empty() ? "" : ", ") + (found.info ? (*found.info)->id : found.file);
  }
  co_return fail(Code::not_found, "no plugin '" + asked->second +
                                      "'; available: " + (known.empty() ? "none (see agent.plugin_dirs)" : known));
}

Task<Answer> Api::resume(Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  const std::string name = fields.text("name");
  const std::string reason = fields.reason();
  DRIFTD_CO_CHECK(fields.check());
  if (name.empty()) co_return fail(Code::invalid, "'name' is missing: a backend, or a plugin's id, type or file");
  const auto freed = co_await deps_.control.resume(name);
  if (!freed) co_return fail(freed.error());
  for (const auto& backend : *freed) {
    core::AuditEntry line;
    line.at_ns = SystemClock().wall();
    line.actor = request.actor;
    line.caller = request.caller;
    line.verb = "resumed";
    line.subject = line.backend = backend;
    line.reason = reason;
    // the request has its audit line, and the backend is resumed
    const Status written = co_await deps_.control.audit(std::move(line));
    if (!written)
      log::room("admin").error("{} was resumed, but the audit log has no line about it: {}", backend,
                               written.error().message);
  }
  co_return Value::Object{{"resumed", list_of(*freed)}};
}

}  // namespace driftd::admin
