// SPDX-License-Identifier: Apache-2.0
#include "check/sink/instance.hpp"

#include <fmt/format.h>

#include <cstring>

#include "check/alloc.hpp"
#include "check/guarded_call.hpp"
#include "check/sink/plugin.hpp"

namespace driftd::check {
namespace {

void* const kNoInstance = reinterpret_cast<void*>(0xD0D0D0D0D0D0D0D0);  // the value of open's `out` before the call

std::shared_ptr<const Declarations> declared(const std::map<std::string, std::string>& secrets) {
  auto out = std::make_shared<Declarations>();
  out->secrets = secrets;
  return out;
}

/// Calls a function of the table, with an allocation that fails if the layout says so.
template <class F>
driftd_status fail_allocation_in(const InputLayout& layout, bool spared, F function) {
  if (layout.fail_allocation == 0 || spared) return function();
  const FailingAllocation failing(layout.fail_allocation);
  return function();
}

}  // namespace

/// The state of an instance. It stays alive as long as a stuck call needs it.
struct SinkInstance::Opened {
  const SinkPlugin* plugin = nullptr;
  driftd_instance self = nullptr;
  std::shared_ptr<const Declarations> declared;
  CallMode mode;
  std::atomic<int> calls{0};
  std::size_t written_behind = 0;
  WakeGate gate;

  void wake() {
    gate.wake([this] { plugin->table.wake(self); });
  }

  driftd_status open(driftd_call handle, const std::string& settings) {
    Inputs inputs(mode.layout);
    const auto* args = inputs.put(
        driftd_sink_open_args{sizeof(driftd_sink_open_args), 0, inputs.text("checked"), inputs.text(settings)});
    inputs.ready();
    const Output out(sizeof(driftd_instance), mode.layout.guard_structs);
    std::memcpy(out.at(), &kNoInstance, sizeof kNoInstance);
    const driftd_status status = fail_allocation_in(mode.layout, mode.layout.spare_open, [&] {
      return plugin->table.open(handle, args, reinterpret_cast<driftd_instance*>(out.at()));
    });
    std::memcpy(&self, out.at(), sizeof self);
    written_behind = status != DRIFTD_OK && self != kNoInstance ? sizeof self : 0;
    return status;
  }
};

SinkInstance::SinkInstance(std::shared_ptr<Opened> opened) : opened_(std::move(opened)) {}

SinkInstance::~SinkInstance() {
  if (opened_->gate.closed() || opened_->calls > 0) return;
  try {
    close();
  } catch (const std::exception& e) {
    Host::get().add_violation("deadline.close", e.what());
  }
}

std::pair<CallTrace, std::unique_ptr<SinkInstance>> SinkInstance::open(const Subject& subject,
                                                                       const SecretSettings& settings,
                                                                       const CallFaults& faults, CallMode mode) {
  const auto opened = std::make_shared<Opened>();
  opened->plugin = &SinkPlugin::load(subject);
  opened->declared = declared(settings.secrets);
  opened->mode = mode;
  std::unique_ptr<SinkInstance> instance(new SinkInstance(opened));
  opened->calls = 1;  // keeps the destructor from closing until open has succeeded
  const std::string json = settings.settings.empty() ? "{}" : settings.settings;
  CallTrace trace = instance->call(
      Function::open, faults, 0, [opened, json](driftd_call handle, CallTrace&) { return opened->open(handle, json); });
  if (opened->written_behind > 0 && trace.status != DRIFTD_OK)
    Host::get().add_violation("memory.failed_open", "open failed and wrote to `out`; assign it last");
  if (trace.status != DRIFTD_OK || trace.threw) return {std::move(trace), nullptr};
  opened->calls = 0;
  return {std::move(trace), std::move(instance)};
}

std::unique_ptr<SinkInstance> SinkInstance::open_plain(const Subject& subject, CallMode mode) {
  if (subject.settings_json.empty() && !subject.no_settings.empty()) throw CheckNotMade(subject.no_settings);
  auto [trace, instance] = open(subject, {subject.settings_json, subject.secrets}, {}, mode);
  if (instance == nullptr)
    throw CheckNotMade(fmt::format("open answered {}; give settings that open it (--settings FILE)", trace.why()));
  return std::move(instance);
}

CallTrace SinkInstance::call(Function function, const CallFaults& faults, std::uint32_t events,
                             RunningCall::Body body) const {
  if (opened_->mode.own_thread) return start(function, faults, events, std::move(body)).wait();
  HostCall call(function, faults, opened_->declared);
  call.events = events;
  const driftd_call handle = call.begin();
  call_guarded(call.trace, name_of(function), [&] { return body(handle, call.trace); });
  call.end();
  return std::move(call.trace);
}

RunningCall SinkInstance::start(Function function, const CallFaults& faults, std::uint32_t events,
                                RunningCall::Body body) const {
  auto call = std::make_shared<HostCall>(function, faults, opened_->declared);
  call->events = events;
  ++opened_->calls;
  return RunningCall(
      std::move(call),
      [opened = opened_, function] {
        if (function != Function::open) opened->wake();
      },
      std::move(body), [opened = opened_] { --opened->calls; });
}

RunningCall::Body SinkInstance::deliver_body(const Batch& batch) const {
  return [opened = opened_, batch](driftd_call handle, CallTrace&) {
    Inputs inputs(opened->mode.layout);
    const driftd_batch* given = put_batch(inputs, batch);
    inputs.ready();
    return fail_allocation_in(opened->mode.layout, false,
                              [&] { return opened->plugin->table.deliver(opened->self, handle, given); });
  };
}

RunningCall::Body SinkInstance::probe_body() const {
  return [opened = opened_](driftd_call handle, CallTrace& trace) {
    return opened->plugin->table.probe(opened->self, handle, &push_health, &trace);
  };
}

RunningCall SinkInstance::start_deliver(const Batch& batch, const CallFaults& faults) const {
  return start(Function::deliver, faults, static_cast<std::uint32_t>(batch.size()), deliver_body(batch));
}

CallTrace SinkInstance::deliver(const Batch& batch, const CallFaults& faults) const {
  return call(Function::deliver, faults, static_cast<std::uint32_t>(batch.size()), deliver_body(batch));
}

RunningCall SinkInstance::start_probe(const CallFaults& faults) const {
  return start(Function::probe, faults, 0, probe_body());
}

CallTrace SinkInstance::probe(const CallFaults& faults) const { return call(Function::probe, faults, 0, probe_body()); }

CallTrace SinkInstance::flush(const CallFaults& faults) const {
  return call(Function::flush, faults, 0, [opened = opened_](driftd_call handle, CallTrace&) {
    return opened->plugin->table.flush(opened->self, handle);
  });
}

void SinkInstance::wake() const { opened_->wake(); }
bool SinkInstance::has_flush() const { return opened_->plugin->info().has_flush; }
std::size_t SinkInstance::written_behind() const { return opened_->written_behind; }

const void* SinkInstance::query(const std::string& id, std::uint32_t revision) const {
  Inputs inputs(opened_->mode.layout);
  const driftd_str name = inputs.text(id);
  inputs.ready();
  return opened_->plugin->table.query(name, revision);
}

void SinkInstance::close() {
  if (!opened_->gate.close()) throw RuleBroken(fmt::format("wake did not return within {} ms", kGrace.count()));
  const auto close = [opened = opened_] {
    CallTrace trace;
    call_guarded(trace, "close", [&] { return opened->plugin->table.close(opened->self), DRIFTD_OK; });
  };
  if (!opened_->mode.own_thread) return close();
  const auto job = Job::start(close);
  if (!job->wait(kGrace)) throw RuleBroken(fmt::format("close did not return within {} ms", kGrace.count()));
}

}  // namespace driftd::check
