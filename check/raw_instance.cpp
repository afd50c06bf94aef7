// SPDX-License-Identifier: Apache-2.0
#include "check/raw_instance.hpp"

#include <driftd/ext/watch.h>
#include <fmt/format.h>

#include <cstring>

#include "check/alloc.hpp"
#include "check/guarded_call.hpp"
#include "check/progress.hpp"

namespace driftd::check {
namespace {

void* const kNoInstance = reinterpret_cast<void*>(0xD0D0D0D0D0D0D0D0);  // the value of open's `out` before the call

}  // namespace

RawInstance::RawInstance(const Subject& subject, InputLayout layout)
    : subject_(subject),
      layout_(layout),
      provider_(Provider::load(subject)),
      declared_(provider_.declared(subject.secrets)) {}

RawInstance::~RawInstance() {
  if (opened_) close();
}

template <class F>
CallTrace RawInstance::call(Function function, const CallFaults& faults, F body) {
  HostCall call(function, faults, declared_);
  const driftd_call handle = call.begin();
  call_guarded(call.trace, name_of(function), [&] {
    const bool spared = layout_.spare_open && function == Function::open;
    if (layout_.fail_allocation == 0 || spared) return body(handle, call.trace);
    const FailingAllocation failing(layout_.fail_allocation);
    return body(handle, call.trace);
  });
  call.end();
  return std::move(call.trace);
}

CallTrace RawInstance::open(const std::string& settings_json, const CallFaults& faults) {
  Inputs inputs(layout_);
  const auto* args =
      inputs.put(driftd_open_args{sizeof(driftd_open_args), 0, inputs.text("checked"), inputs.text(settings_json)});
  inputs.ready();
  const Output out(sizeof(driftd_instance), layout_.guard_structs);
  std::memcpy(out.at(), &kNoInstance, sizeof kNoInstance);
  CallTrace trace = call(Function::open, faults, [&](driftd_call handle, CallTrace&) {
    return provider_.table.open(handle, args, reinterpret_cast<driftd_instance*>(out.at()));
  });
  opened_ = trace.status == DRIFTD_OK;
  std::memcpy(&self_, out.at(), sizeof self_);
  if (!opened_ && self_ != kNoInstance) written_behind_ += sizeof self_;
  return trace;
}

void RawInstance::open() {
  if (subject_.settings_json.empty() && !subject_.no_settings.empty()) throw CheckNotMade(subject_.no_settings);
  const CallTrace trace = open(subject_.settings_json.empty() ? "{}" : subject_.settings_json);
  if (!opened_)
    throw CheckNotMade(fmt::format("open answered {}; give settings that open it (--settings FILE)", trace.why()));
}

CallTrace RawInstance::refresh(const CallArguments& arguments, const CallFaults& faults) {
  Inputs inputs(layout_);
  std::vector<driftd_str> kinds;
  for (const auto& kind : arguments.kinds) kinds.push_back(inputs.text(kind));
  const auto* args = inputs.put(driftd_refresh_args{
      sizeof(driftd_refresh_args), arguments.full ? DRIFTD_REFRESH_FULL : 0, inputs.text(arguments.cursor),
      inputs.put_texts(kinds), static_cast<std::uint32_t>(kinds.size()), 0});
  inputs.ready();
  const std::uint32_t size = sizeof(driftd_refresh_result) + layout_.longer;
  const Output result(size, layout_.guard_structs);
  std::memset(result.at(), 0, size);
  std::memcpy(result.at(), &size, sizeof size);
  CallTrace trace = call(Function::refresh, faults, [&](driftd_call handle, CallTrace&) {
    return provider_.table.refresh(self_, handle, args, reinterpret_cast<driftd_refresh_result*>(result.at()));
  });
  driftd_refresh_result answer{};
  std::memcpy(&answer, result.at(), sizeof answer);
  trace.unchanged = answer.unchanged != 0;
  trace.next_ms = answer.next_ms;
  written_behind_ += result.written_behind();
  return trace;
}

CallTrace RawInstance::read(const std::vector<Identity>& ids, const CallFaults& faults) {
  Inputs inputs(layout_);
  std::vector<driftd_identity> given;
  for (const auto& id : ids)
    given.push_back(
        {sizeof(driftd_identity), 0, inputs.text(id.id.kind), inputs.text(id.id.id), inputs.text(id.backend)});
  const auto* array = inputs.put(given);
  inputs.ready();
  return call(Function::read, faults, [&](driftd_call handle, CallTrace&) {
    return provider_.table.read(self_, handle, array, static_cast<std::uint32_t>(ids.size()),
                                inputs.stride<driftd_identity>());
  });
}

CallTrace RawInstance::health() {
  return call(Function::health, {}, [&](driftd_call handle, CallTrace& trace) {
    return provider_.table.health(self_, handle, &push_health, &trace);
  });
}

CallTrace RawInstance::watch(const CallFaults& faults) {
  const auto* table =
      static_cast<const driftd_watch_table*>(provider_.query(DRIFTD_EXT_WATCH, DRIFTD_EXT_WATCH_REVISION));
  if (table == nullptr) throw CheckNotApplicable("it does not offer driftd.watch/1");
  Inputs inputs(layout_);
  const auto* args = inputs.put(driftd_watch_args{sizeof(driftd_watch_args), 0, inputs.text("")});
  inputs.ready();
  return call(Function::watch, faults,
              [&](driftd_call handle, CallTrace&) { return table->watch(self_, handle, args); });
}

CallTrace RawInstance::diff(const Identity& id) {
  Inputs inputs(layout_);
  const std::vector<driftd_change> changes{
      {sizeof(driftd_change), 0, inputs.text("some.attribute"), inputs.text("1"), inputs.text("\"one\"")},
      {sizeof(driftd_change), 1, inputs.text("other[0]"), inputs.text(""), inputs.text("{}")}};
  const auto* array = inputs.put(changes);
  const auto* args =
      inputs.put(driftd_diff_args{sizeof(driftd_diff_args), inputs.stride<driftd_change>(), inputs.text(id.id.kind),
                                  inputs.text(id.id.id), array, static_cast<std::uint32_t>(changes.size()), 0});
  inputs.ready();
  CallTrace trace;
  call_guarded(trace, "diff", [&] { return provider_.table.diff(self_, args, &push_verdict, &trace); });
  return trace;
}

CallTrace RawInstance::schema(const std::string& what) {
  Inputs inputs(layout_);
  const driftd_str name = inputs.text(what);
  inputs.ready();
  CallTrace trace;
  call_guarded(trace, "schema", [&] { return provider_.table.schema(name, &push_text, &trace); });
  return trace;
}

const void* RawInstance::query(const std::string& id, std::uint32_t revision) {
  Inputs inputs(layout_);
  const driftd_str name = inputs.text(id);
  inputs.ready();
  const void* out = nullptr;
  CallTrace trace;
  call_guarded(trace, "query", [&] { return out = provider_.table.query(name, revision), DRIFTD_OK; });
  return out;
}

void RawInstance::wake() {
  CallTrace trace;
  call_guarded(trace, "wake", [&] { return provider_.table.wake(self_), DRIFTD_OK; });
}

void RawInstance::close() {
  opened_ = false;
  CallTrace trace;
  call_guarded(trace, "close", [&] { return provider_.table.close(self_), DRIFTD_OK; });
}

Listing plain_listing(RawInstance& instance) {
  const CallTrace first = instance.refresh(), second = instance.refresh();
  if (first.status != DRIFTD_OK || first.threw) {
    throw CheckNotMade(
        fmt::format("refresh answered {}; the check needs a system that can be read (see refresh.works)", first.why()));
  }
  const std::string differs = difference(instance.provider(), listing_of(first), listing_of(second));
  if (!differs.empty())
    throw CheckNotMade(fmt::format("two plain refreshes differ: {}; see refresh.same_twice", differs));
  return listing_of(first);
}

void expect_same(const Provider& provider, const Listing& expected, const CallTrace& found, const std::string& when) {
  if (found.threw) throw RuleBroken(when + ": an exception crossed the border");
  if (found.status != DRIFTD_OK) {
    throw RuleBroken(fmt::format("{}: expected the {} records of a plain refresh, found the answer {}", when,
                                 expected.size(), found.why()));
  }
  const std::string differs = difference(provider, expected, listing_of(found));
  if (!differs.empty())
    throw ListingDiffers(fmt::format("{}: expected what a plain refresh gives, found a difference: {}", when, differs));
}

void call_every_function(RawInstance& instance, const std::function<void(const std::string&)>& after) {
  const auto did = [&](const CallTrace&, const char* what) { after(what); };
  const auto& kinds = instance.provider().info().kinds;
  did(instance.schema("settings"), "schema(\"settings\")");
  for (const auto& kind : kinds) did(instance.schema(kind), "schema of a kind");
  did(instance.schema("no such kind"), "schema of an unknown name");
  (void)instance.query("driftd.nothing", 1);
  after("query");
  did(instance.open("[]"), "open with settings that are no object");
  if (instance.opened()) instance.close();
  instance.open();
  after("open");
  const CallTrace all = instance.refresh();
  after("refresh");
  did(instance.refresh(CallArguments{"garbage \xf0\x9f\x92\xa9 cursor", {}, {}, false}),
      "refresh from a garbage cursor");
  did(instance.refresh(CallArguments{{}, {"no such kind"}, {}, false}), "refresh of an unknown kind");
  CallFaults denied;
  denied.deny_secrets = true;
  did(instance.refresh({}, denied), "refresh with its secrets denied");
  CallFaults cancelled;
  cancelled.cancel_at = 0;
  did(instance.refresh({}, cancelled), "refresh, cancelled already");
  const Identity unknown{{kinds.empty() ? "thing" : kinds.front(), "no such id \xc3\xa4"}, {}};
  did(instance.read({unknown}), "read of an unknown identity");
  if (!all.records.empty()) did(instance.read({identity_of(all.records.front()), unknown}), "read");
  did(instance.read({}), "read of nothing");
  did(instance.health(), "health");
  did(instance.diff(unknown), "diff");
  instance.wake();
  after("wake");
  instance.close();
  after("close");
}

}  // namespace driftd::check
