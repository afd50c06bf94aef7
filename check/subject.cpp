// SPDX-License-Identifier: Apache-2.0
#include "check/subject.hpp"

#include <driftd/ext/watch.h>
#include <fmt/format.h>

#include "check/guarded_call.hpp"
#include "ipc/text.hpp"

namespace driftd::check {
namespace {

driftd_str str(const std::string& text) { return {text.data(), text.size()}; }

driftd_status do_refresh(const driftd_provider_table& table, driftd_instance self, driftd_call call,
                         const CallArguments& arguments, CallTrace& trace) {
  std::vector<driftd_str> kinds;
  for (const auto& kind : arguments.kinds) kinds.push_back(str(kind));
  const driftd_refresh_args args{sizeof args,
                                 arguments.full ? DRIFTD_REFRESH_FULL : 0,
                                 str(arguments.cursor),
                                 kinds.empty() ? nullptr : kinds.data(),
                                 static_cast<std::uint32_t>(kinds.size()),
                                 0};
  driftd_refresh_result result{sizeof result, 0, 0};
  const driftd_status status = table.refresh(self, call, &args, &result);
  trace.unchanged = result.unchanged != 0;
  trace.next_ms = result.next_ms;
  return status;
}

driftd_status do_read(const driftd_provider_table& table, driftd_instance self, driftd_call call,
                      const CallArguments& arguments) {
  std::vector<driftd_identity> ids;
  for (const auto& id : arguments.ids)
    ids.push_back({sizeof(driftd_identity), 0, str(id.id.kind), str(id.id.id), str(id.backend)});
  return table.read(self, call, ids.data(), static_cast<std::uint32_t>(ids.size()), sizeof(driftd_identity));
}

driftd_status do_watch(const Provider& provider, driftd_instance self, driftd_call call,
                       const CallArguments& arguments) {
  const auto* table =
      static_cast<const driftd_watch_table*>(provider.query(DRIFTD_EXT_WATCH, DRIFTD_EXT_WATCH_REVISION));
  if (table == nullptr || table->watch == nullptr) return DRIFTD_UNSUPPORTED;
  const driftd_watch_args args{sizeof args, 0, str(arguments.cursor)};
  return table->watch(self, call, &args);
}

}  // namespace

/// The state of an instance. It stays alive as long as a stuck call needs it.
struct Instance::Opened {
  const Provider* provider = nullptr;
  driftd_instance self = nullptr;
  std::shared_ptr<const Declarations> declared;
  std::atomic<int> calls{0};
  WakeGate gate;

  void wake() {
    gate.wake([this] { provider->table.wake(self); });
  }

  driftd_status call(Function function, driftd_call handle, const CallArguments& arguments, CallTrace& trace) const {
    const auto& table = provider->table;
    switch (function) {
      case Function::refresh:
        return do_refresh(table, self, handle, arguments, trace);
      case Function::read:
        return do_read(table, self, handle, arguments);
      case Function::health:
        return table.health(self, handle, &push_health, &trace);
      case Function::watch:
        return do_watch(*provider, self, handle, arguments);
      default:
        return DRIFTD_UNSUPPORTED;
    }
  }
};

Instance::Instance(std::shared_ptr<Opened> opened) : opened_(std::move(opened)) {}

Instance::Instance(const Subject& subject) {
  if (subject.settings_json.empty() && !subject.no_settings.empty()) throw CheckNotMade(subject.no_settings);
  auto [trace, instance] = open(subject, subject.settings_json, subject.secrets);
  if (instance == nullptr) {
    if (subject.settings_json.empty() && !subject.no_settings.empty()) throw CheckNotMade(subject.no_settings);
    throw CheckNotMade(fmt::format("open answered {}; give settings that open it (--settings FILE)", trace.why()));
  }
  opened_ = std::exchange(instance->opened_, nullptr);
}

Instance::~Instance() {
  if (opened_ == nullptr || opened_->gate.closed() || opened_->calls > 0) return;
  try {
    close();
  } catch (const std::exception& e) {
    Host::get().add_violation("deadline.close", e.what());
  }
}

std::pair<CallTrace, std::unique_ptr<Instance>> Instance::open(const Subject& subject, const std::string& settings_json,
                                                               const std::map<std::string, std::string>& secrets,
                                                               const CallFaults& faults) {
  const auto opened = std::make_shared<Opened>();
  opened->provider = &Provider::load(subject);
  opened->declared = opened->provider->declared(secrets);
  const std::string settings = settings_json.empty() ? "{}" : settings_json;
  std::unique_ptr<Instance> instance(new Instance(opened));
  opened->calls = 1;  // keeps the destructor from closing until open has succeeded
  CallTrace trace = instance
                        ->start(Function::open, faults,
                                [opened, settings](driftd_call handle, CallTrace&) {
                                  const std::string backend = "checked";
                                  const driftd_open_args args{sizeof args, 0, str(backend), str(settings)};
                                  return opened->provider->table.open(handle, &args, &opened->self);
                                })
                        .wait();
  if (trace.status != DRIFTD_OK || trace.threw) return {std::move(trace), nullptr};
  opened->calls = 0;
  return {std::move(trace), std::move(instance)};
}

RunningCall Instance::start(Function function, const CallArguments& arguments, CallFaults faults) const {
  return start(function, std::move(faults),
               [opened = opened_, function, arguments](driftd_call handle, CallTrace& trace) {
                 return opened->call(function, handle, arguments, trace);
               });
}

RunningCall Instance::start(Function function, CallFaults faults, RunningCall::Body body) const {
  auto call = std::make_shared<HostCall>(function, std::move(faults), opened_->declared);
  ++opened_->calls;
  return RunningCall(
      std::move(call),
      [opened = opened_, function] {
        if (function != Function::open) opened->wake();
      },
      std::move(body), [opened = opened_] { --opened->calls; });
}

CallTrace Instance::diff(const driftd_diff_args& args) const {
  const auto trace = std::make_shared<CallTrace>();
  const auto job = Job::start([trace, opened = opened_, args] {
    call_guarded(*trace, "diff",
                 [&] { return opened->provider->table.diff(opened->self, &args, &push_verdict, trace.get()); });
  });
  if (!job->wait(kGrace))
    throw RuleBroken(fmt::format("diff, which does no I/O, did not return within {} ms", kGrace.count()));
  return *trace;
}

void Instance::wake() const { opened_->wake(); }

void Instance::close() {
  if (!opened_->gate.close()) throw RuleBroken(fmt::format("wake did not return within {} ms", kGrace.count()));
  const auto job = Job::start([opened = opened_] {
    CallTrace trace;
    call_guarded(trace, "close", [&] { return opened->provider->table.close(opened->self), DRIFTD_OK; });
  });
  if (!job->wait(kGrace)) throw RuleBroken(fmt::format("close did not return within {} ms", kGrace.count()));
}

driftd_instance Instance::raw() const { return opened_->self; }
const Provider& Instance::provider() const { return *opened_->provider; }

std::string render(const Identity& identity) {
  const std::string id = ipc::printable(core::render(identity.id), 200);
  return identity.backend.empty() ? id : id + " of " + ipc::printable(identity.backend, 100);
}

std::map<std::pair<std::string, std::string>, std::uint64_t> CallTrace::complete() const {
  std::map<std::pair<std::string, std::string>, std::uint64_t> out;
  for (const auto& mark : marks) {
    if (mark.type == DRIFTD_MARK_COMPLETE) out[{mark.kind, mark.backend}] = mark.count;
  }
  return out;
}

std::map<std::pair<std::string, std::string>, std::uint64_t> CallTrace::counts() const {
  std::map<std::pair<std::string, std::string>, std::uint64_t> out;
  for (const auto& record : records) ++out[{record.id.kind, record.backend}];
  return out;
}

std::string CallTrace::why() const {
  const bool known = status >= DRIFTD_OK && status <= DRIFTD_INTERNAL;
  const std::string code(known ? driftd::render(static_cast<Code>(status)) : "an unknown status");
  return code + (diagnostics.empty() ? " without a diagnostic" : ": " + diagnostics.front().text);
}

}  // namespace driftd::check
