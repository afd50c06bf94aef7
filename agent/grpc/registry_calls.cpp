// SPDX-License-Identifier: Apache-2.0
// The calls that change the registry, and how a backend of it looks.
#include "base/escape.hpp"
#include "base/fatal.hpp"
#include "core/registration_names.hpp"
#include "grpc/access.hpp"

namespace driftd::rpc {
namespace {

using ::grpc::CallbackServerContext;
using ::grpc::ServerUnaryReactor;
using Refusal = core::ManualAnswer::Refusal;

/// Adds the members of a JSON object to `out`. Those that have a field of their own must not be among them.
Status add_object(core::Value::Object& out, const std::string& json, const char* field) {
  if (json.empty()) return {};
  const auto parsed = core::parse(json);
  if (!parsed || parsed->object() == nullptr) {
    return fail(Code::invalid, std::string(field) + " is not a JSON object" +
                                   (parsed ? std::string() : ": " + parsed.error().message) +
                                   "; expected {\"interval\": \"30s\", …}");
  }
  for (const auto& [name, value] : *parsed->object()) {
    if (!out.emplace(name, value).second) {
      return fail(Code::invalid, std::string(field) + ": '" + name + "' has a field of its own in the definition");
    }
  }
  return {};
}

/// Returns the definition as one item of `backends:`. Empty fields are left out.
Result<std::string> item_of(const v1::BackendDefinition& from) {
  core::Value::Object out{{"name", from.name()}, {"provider", from.provider()}};
  core::Value settings(core::Value::Object{});
  if (!from.settings_json().empty()) {
    auto parsed = core::parse(from.settings_json());
    if (!parsed || parsed->object() == nullptr) {
      return fail(Code::invalid, "settings_json is not a JSON object" +
                                     (parsed ? std::string() : ": " + parsed.error().message) +
                                     "; expected the settings of the provider's README");
    }
    settings = std::move(*parsed);
  }
  out.emplace("settings", std::move(settings));
  core::Value::Object labels;
  for (const auto& [name, text] : from.labels()) labels.emplace(name, text);
  core::Value::Array patterns;
  for (const auto& pattern : from.patterns()) patterns.emplace_back(pattern);
  if (!from.endpoint().empty()) out.emplace("endpoint", from.endpoint());
  if (!labels.empty()) out.emplace("labels", std::move(labels));
  if (!patterns.empty()) out.emplace("patterns", std::move(patterns));
  core::Value::Object fields = out;
  for (const char* name : {"endpoint", "labels", "patterns"}) fields.emplace(name, core::Value());
  DRIFTD_CHECK(add_object(fields, from.options_json(), "options_json"));
  for (auto& [name, value] : fields) out.emplace(name, std::move(value));
  for (const char* name : {"endpoint", "labels", "patterns"}) {
    if (out.at(name) == core::Value()) out.erase(name);
  }
  return core::render(core::Value(std::move(out)));
}

core::ManualCall call_of(const Caller& caller) {
  core::ManualCall out;
  out.actor = caller.name;
  out.caller = caller.process;
  return out;
}

::grpc::StatusCode code_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::exists:
      return ::grpc::StatusCode::ALREADY_EXISTS;
    case Refusal::other_source:
    case Refusal::no_plugin:
      return ::grpc::StatusCode::FAILED_PRECONDITION;
    case Refusal::etag_mismatch:
      return ::grpc::StatusCode::ABORTED;
    case Refusal::none:
      break;
  }
  return ::grpc::StatusCode::OK;
}

::grpc::Status status_of(const Result<core::ManualAnswer>& answer) {
  if (!answer) return to_grpc(fail(answer.error()));
  if (answer->refusal == Refusal::none) return ::grpc::Status::OK;
  return {code_of(answer->refusal), valid_utf8(answer->why)};
}

Task<Result<core::ManualAnswer>> change(Shared& shared, Caller caller, const v1::BackendDefinition* definition,
                                        std::optional<std::string> etag) {
  core::ManualCall call = call_of(caller);
  DRIFTD_CO_TRY(call.definition, item_of(*definition));
  if (!etag) {
    auto answer = co_await shared.deps.manual.register_backend(std::move(call));
    co_return answer;
  }
  call.etag = *etag;
  auto answer = co_await shared.deps.manual.update_backend(std::move(call));
  co_return answer;
}

/// A change has its line in the transaction that makes it. One that was turned down has a line of its own.
Task<void> audit_refused(Shared& shared, core::AuditEntry line, Result<core::ManualAnswer> answer) {
  if (answer && answer->refusal == Refusal::none) co_return;
  Error error = answer ? Error{Code::conflict, answer->why} : answer.error();
  co_await audit_failure(shared, std::move(line), std::move(error));
}

Task<void> serve_change(Shared& shared, CallbackServerContext* context, ServerUnaryReactor* reactor,
                        const v1::BackendDefinition* definition, std::optional<std::string> etag, v1::Backend* out) {
  const std::string verb = etag ? "change backend" : "register backend";
  std::string asked = (etag ? "UpdateBackend " : "RegisterBackend ") + definition->name();
  auto caller = co_await authorise(shared, *context, Rights::decide, std::move(asked));
  if (!caller) {
    reactor->Finish(to_grpc(fail(caller.error())));
    co_return;
  }
  core::AuditEntry line = line_of(*caller, verb, definition->name());
  auto answer = co_await change(shared, std::move(*caller), definition, std::move(etag));
  co_await audit_refused(shared, std::move(line), answer);
  const ::grpc::Status status = status_of(answer);
  if (status.ok()) fill(std::move(answer->backend), out);
  reactor->Finish(status);
}

Task<void> serve_delete(Shared& shared, CallbackServerContext* context, ServerUnaryReactor* reactor,
                        const v1::DeleteBackendRequest* request, v1::DeleteBackendResponse* out) {
  std::string asked = "DeleteBackend " + request->name();
  auto caller = co_await authorise(shared, *context, Rights::decide, std::move(asked));
  if (!caller) {
    reactor->Finish(to_grpc(fail(caller.error())));
    co_return;
  }
  core::AuditEntry line = line_of(*caller, "unregister backend", request->name());
  core::ManualCall call = call_of(*caller);
  call.name = request->name();
  call.etag = request->etag();
  const auto answer = co_await shared.deps.manual.delete_backend(std::move(call));
  co_await audit_refused(shared, std::move(line), answer);
  if (answer) out->set_existed(answer->existed);
  reactor->Finish(status_of(answer));
}

}  // namespace

void fill(core::RegisteredBackend from, v1::Backend* to) {
  const core::BackendSnapshot shown = core::shown_backend(std::move(from.snapshot));
  to->set_name(shown.name);
  to->set_type(shown.type);
  to->set_endpoint(shown.endpoint);
  to->mutable_metadata()->insert(shown.metadata.begin(), shown.metadata.end());
  for (const auto& capability : shown.capabilities) to->add_capabilities(capability);
  to->set_config_json(shown.config_json);
  to->set_source(from.source);
  to->set_defined_at(valid_utf8(from.defined_at));
  to->set_etag(from.etag);
}

ServerUnaryReactor* RegistryService::RegisterBackend(CallbackServerContext* context,
                                                     const v1::RegisterBackendRequest* request, v1::Backend* answer) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  auto serving = serve_change(shared_, context, reactor, &request->definition(), std::nullopt, answer);
  asio::co_spawn(shared_.deps.core, std::move(serving), fatal);
  return reactor;
}

ServerUnaryReactor* RegistryService::UpdateBackend(CallbackServerContext* context,
                                                   const v1::UpdateBackendRequest* request, v1::Backend* answer) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  auto serving = serve_change(shared_, context, reactor, &request->definition(), request->etag(), answer);
  asio::co_spawn(shared_.deps.core, std::move(serving), fatal);
  return reactor;
}

ServerUnaryReactor* RegistryService::DeleteBackend(CallbackServerContext* context,
                                                   const v1::DeleteBackendRequest* request,
                                                   v1::DeleteBackendResponse* answer) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  auto serving = serve_delete(shared_, context, reactor, request, answer);
  asio::co_spawn(shared_.deps.core, std::move(serving), fatal);
  return reactor;
}

}  // namespace driftd::rpc
