// SPDX-License-Identifier: Apache-2.0
#include "check/bare.hpp"

#include <dlfcn.h>
#include <driftd/ext/watch.h>
#include <fmt/format.h>

#include <cstring>

#include "check/alloc.hpp"
#include "check/intake.hpp"
#include "check/stage.hpp"

namespace driftd::check {
namespace {

void* const kNoInstance = reinterpret_cast<void*>(0xD0D0D0D0D0D0D0D0);  // what `out` of open holds before

void push_text(void* user, driftd_str text) {
  static_cast<Said*>(user)->pushed.push_back(take_text(text, "pushed text", 1u << 20));
}
void push_health(void* user, const driftd_health* health) {
  static_cast<Said*>(user)->health.push_back(take_health(health));
}
void push_verdict(void* user, const driftd_verdict* verdict) {
  static_cast<Said*>(user)->verdicts.push_back(take_verdict(verdict));
}

template <class F>
void cross(Said& said, const std::string& name, F function) {
  stage(name);
  try {
    said.status = function();
    (void)take_status(said.status, name.c_str());
  } catch (...) {
    said.threw = true;
    said.status = DRIFTD_INTERNAL;
    Host::get().violate("threads.no_exception",
                        name +
                            ": an exception crossed the border; expected a status: catch everything in each function "
                            "of the table (the SDK's barrier does)");
  }
  stage("after " + name);
}

}  // namespace

Entry find_entry(const Subject& subject) {
  stage("dlopen: its constructors run");
  void* library = ::dlopen(subject.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw NotMade(fmt::format("it cannot be loaded ({}); see binary.loads", ::dlerror()));
  void* entry = ::dlsym(library, "driftd_provider_v1");
  if (entry == nullptr) throw NotMade("driftd_provider_v1 is not exported; see binary.entry");
  stage("after dlopen");
  return reinterpret_cast<Entry>(entry);
}

Answer negotiate(const Subject& subject, const Offer& offer, Manner manner) {
  const Entry entry = find_entry(subject);
  Inputs inputs(manner);
  const auto* given =
      inputs.put(driftd_offer{sizeof(driftd_offer), 0, offer.minor_max, offer.in_process, inputs.text("driftd-check")});
  inputs.ready();
  const std::uint32_t size = offer.accept_size + manner.longer;
  const Output accept(size, manner.guard_structs);
  std::memset(accept.at(), 0, size);
  std::memcpy(accept.at(), &size, sizeof size);
  stage(fmt::format("driftd_provider_v1, offered minor {} in structs of {} and {} bytes", offer.minor_max,
                    sizeof(driftd_offer) + manner.longer, size));
  const auto* host = offer.host != nullptr ? offer.host : Host::get().table();
  Answer out;
  try {
    out.status = entry(host, given, reinterpret_cast<driftd_accept*>(accept.at()));
  } catch (...) {
    throw Broken("driftd_provider_v1: an exception crossed the border; expected a status");
  }
  driftd_accept answer{};
  std::memcpy(&answer, accept.at(), std::min<std::size_t>(size, sizeof answer));
  out.minor_built = answer.minor_built;
  out.minor_needed = answer.minor_needed;
  out.table = answer.table;
  out.written_behind = accept.written_behind();
  stage("after driftd_provider_v1");
  return out;
}

Bare::Bare(const Subject& subject, Manner manner)
    : subject_(subject),
      manner_(manner),
      provider_(Provider::load(subject)),
      declared_(provider_.declared(subject.secrets)) {}

Bare::~Bare() {
  if (opened_) close();
}

template <class F>
Said Bare::call(Function function, const Treatment& treatment, F body) {
  HostCall call(function, treatment, declared_);
  const driftd_call handle = call.begin();
  cross(call.said, name_of(function), [&] {
    const bool spared = manner_.spare_open && function == Function::open;
    if (manner_.fail_allocation == 0 || spared) return body(handle, call.said);
    const FailingAllocation failing(manner_.fail_allocation);
    return body(handle, call.said);
  });
  call.end();
  return std::move(call.said);
}

Said Bare::open(const std::string& settings_json, const Treatment& treatment) {
  Inputs inputs(manner_);
  const auto* args =
      inputs.put(driftd_open_args{sizeof(driftd_open_args), 0, inputs.text("checked"), inputs.text(settings_json)});
  inputs.ready();
  const Output out(sizeof(driftd_instance), manner_.guard_structs);
  std::memcpy(out.at(), &kNoInstance, sizeof kNoInstance);
  Said said = call(Function::open, treatment, [&](driftd_call handle, Said&) {
    return provider_.table.open(handle, args, reinterpret_cast<driftd_instance*>(out.at()));
  });
  opened_ = said.status == DRIFTD_OK;
  std::memcpy(&self_, out.at(), sizeof self_);
  if (!opened_ && self_ != kNoInstance) written_behind_ += sizeof self_;
  return said;
}

void Bare::open() {
  if (subject_.settings_json.empty() && !subject_.no_settings.empty()) throw NotMade(subject_.no_settings);
  const Said said = open(subject_.settings_json.empty() ? "{}" : subject_.settings_json);
  if (!opened_)
    throw NotMade(fmt::format("open answered {}; give settings that open it (--settings FILE)", said.why()));
}

Said Bare::refresh(const Ask& ask, const Treatment& treatment) {
  Inputs inputs(manner_);
  std::vector<driftd_str> kinds;
  for (const auto& kind : ask.kinds) kinds.push_back(inputs.text(kind));
  const auto* args = inputs.put(driftd_refresh_args{sizeof(driftd_refresh_args), ask.full ? DRIFTD_REFRESH_FULL : 0,
                                                    inputs.text(ask.cursor), inputs.put_texts(kinds),
                                                    static_cast<std::uint32_t>(kinds.size()), 0});
  inputs.ready();
  const std::uint32_t size = sizeof(driftd_refresh_result) + manner_.longer;
  const Output result(size, manner_.guard_structs);
  std::memset(result.at(), 0, size);
  std::memcpy(result.at(), &size, sizeof size);
  Said said = call(Function::refresh, treatment, [&](driftd_call handle, Said&) {
    return provider_.table.refresh(self_, handle, args, reinterpret_cast<driftd_refresh_result*>(result.at()));
  });
  driftd_refresh_result answer{};
  std::memcpy(&answer, result.at(), sizeof answer);
  said.unchanged = answer.unchanged != 0;
  said.next_ms = answer.next_ms;
  written_behind_ += result.written_behind();
  return said;
}

Said Bare::read(const std::vector<Identity>& ids, const Treatment& treatment) {
  Inputs inputs(manner_);
  std::vector<driftd_identity> given;
  for (const auto& id : ids)
    given.push_back(
        {sizeof(driftd_identity), 0, inputs.text(id.id.kind), inputs.text(id.id.id), inputs.text(id.backend)});
  const auto* array = inputs.put(given);
  inputs.ready();
  return call(Function::read, treatment, [&](driftd_call handle, Said&) {
    return provider_.table.read(self_, handle, array, static_cast<std::uint32_t>(ids.size()),
                                inputs.stride<driftd_identity>());
  });
}

Said Bare::health() {
  return call(Function::health, {}, [&](driftd_call handle, Said& said) {
    return provider_.table.health(self_, handle, &push_health, &said);
  });
}

Said Bare::watch(const Treatment& treatment) {
  const auto* table =
      static_cast<const driftd_watch_table*>(provider_.query(DRIFTD_EXT_WATCH, DRIFTD_EXT_WATCH_REVISION));
  if (table == nullptr) throw NotApplicable("it does not offer driftd.watch/1");
  Inputs inputs(manner_);
  const auto* args = inputs.put(driftd_watch_args{sizeof(driftd_watch_args), 0, inputs.text("")});
  inputs.ready();
  return call(Function::watch, treatment, [&](driftd_call handle, Said&) { return table->watch(self_, handle, args); });
}

Said Bare::diff(const Identity& id) {
  Inputs inputs(manner_);
  const std::vector<driftd_change> changes{
      {sizeof(driftd_change), 0, inputs.text("some.attribute"), inputs.text("1"), inputs.text("\"one\"")},
      {sizeof(driftd_change), 1, inputs.text("other[0]"), inputs.text(""), inputs.text("{}")}};
  const auto* array = inputs.put(changes);
  const auto* args =
      inputs.put(driftd_diff_args{sizeof(driftd_diff_args), inputs.stride<driftd_change>(), inputs.text(id.id.kind),
                                  inputs.text(id.id.id), array, static_cast<std::uint32_t>(changes.size()), 0});
  inputs.ready();
  Said said;
  cross(said, "diff", [&] { return provider_.table.diff(self_, args, &push_verdict, &said); });
  return said;
}

Said Bare::schema(const std::string& what) {
  Inputs inputs(manner_);
  const driftd_str name = inputs.text(what);
  inputs.ready();
  Said said;
  cross(said, "schema", [&] { return provider_.table.schema(name, &push_text, &said); });
  return said;
}

const void* Bare::query(const std::string& id, std::uint32_t revision) {
  Inputs inputs(manner_);
  const driftd_str name = inputs.text(id);
  inputs.ready();
  const void* out = nullptr;
  Said said;
  cross(said, "query", [&] { return out = provider_.table.query(name, revision), DRIFTD_OK; });
  return out;
}

void Bare::wake() {
  Said said;
  cross(said, "wake", [&] { return provider_.table.wake(self_), DRIFTD_OK; });
}

void Bare::close() {
  opened_ = false;
  Said said;
  cross(said, "close", [&] { return provider_.table.close(self_), DRIFTD_OK; });
}

Listing plain_listing(Bare& bare) {
  const Said first = bare.refresh(), second = bare.refresh();
  if (first.status != DRIFTD_OK || first.threw) {
    throw NotMade(
        fmt::format("refresh answered {}; the check needs a system that can be read (see refresh.works)", first.why()));
  }
  const std::string differs = difference(bare.provider(), listing_of(first), listing_of(second));
  if (!differs.empty()) throw NotMade(fmt::format("two plain refreshes differ: {}; see refresh.same_twice", differs));
  return listing_of(first);
}

void expect_same(const Provider& provider, const Listing& expected, const Said& found, const std::string& when) {
  if (found.threw) throw Broken(when + ": an exception crossed the border");
  if (found.status != DRIFTD_OK) {
    throw Broken(fmt::format("{}: expected the {} records of a plain refresh, found the answer {}", when,
                             expected.size(), found.why()));
  }
  const std::string differs = difference(provider, expected, listing_of(found));
  if (!differs.empty())
    throw Differs(fmt::format("{}: expected what a plain refresh gives, found a difference: {}", when, differs));
}

void whole_script(Bare& bare, const std::function<void(const std::string&)>& after) {
  const auto did = [&](const Said&, const char* what) { after(what); };
  const auto& kinds = bare.provider().info().kinds;
  did(bare.schema("settings"), "schema(\"settings\")");
  for (const auto& kind : kinds) did(bare.schema(kind), "schema of a kind");
  did(bare.schema("no such kind"), "schema of an unknown name");
  (void)bare.query("driftd.nothing", 1);
  after("query");
  did(bare.open("[]"), "open with settings that are no object");
  if (bare.opened()) bare.close();
  bare.open();
  after("open");
  const Said all = bare.refresh();
  after("refresh");
  did(bare.refresh(Ask{"garbage \xf0\x9f\x92\xa9 cursor", {}, {}, false}), "refresh from a garbage cursor");
  did(bare.refresh(Ask{{}, {"no such kind"}, {}, false}), "refresh of an unknown kind");
  Treatment denied;
  denied.deny_secrets = true;
  did(bare.refresh({}, denied), "refresh with its secrets denied");
  Treatment cancelled;
  cancelled.cancel_at = 0;
  did(bare.refresh({}, cancelled), "refresh, cancelled already");
  const Identity unknown{{kinds.empty() ? "thing" : kinds.front(), "no such id \xc3\xa4"}, {}};
  did(bare.read({unknown}), "read of an unknown identity");
  if (!all.records.empty()) did(bare.read({identity_of(all.records.front()), unknown}), "read");
  did(bare.read({}), "read of nothing");
  did(bare.health(), "health");
  did(bare.diff(unknown), "diff");
  bare.wake();
  after("wake");
  bare.close();
  after("close");
}

}  // namespace driftd::check
