// SPDX-License-Identifier: Apache-2.0
// Group refresh, part 3: the extensions that discover backends and that write values back.
#include <driftd/ext/apply.h>
#include <driftd/ext/discover.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/abi_input.hpp"
#include "check/group_refresh.hpp"
#include "check/listing.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::check {
namespace {

constexpr std::uint64_t kMaxElements = 4096;
constexpr std::size_t kMaxConfigBytes = 1u << 20;

driftd_str str(const std::string& text) { return {text.data(), text.size()}; }

// ---- discover

struct Backend {
  std::string name, type, config;
  std::int64_t observed_ns = 0;
  friend bool operator==(const Backend& a, const Backend& b) {
    return a.name == b.name && a.type == b.type && a.config == b.config;
  }
};

struct Discovery {
  std::vector<Backend> backends;
  std::vector<std::string> wrong;
  bool complete = false;
};

void check_texts(Discovery& out, const driftd_str* first, std::uint64_t count, const std::string& member) {
  if (count > kMaxElements || (first == nullptr && count > 0)) {
    out.wrong.push_back(fmt::format("{}: {} elements at {}", member, count, first == nullptr ? "NULL" : "an address"));
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (parse_text(first[i], member.c_str()).empty()) out.wrong.push_back(member + ": an empty element");
  }
}

void check_pairs(Discovery& out, const driftd_kv* first, std::uint32_t count, std::uint32_t stride,
                 const std::string& member) {
  if (count == 0) return;
  if (count > kMaxElements || first == nullptr || stride < sizeof(std::uint32_t)) {
    out.wrong.push_back(fmt::format("{}: {} elements of {} bytes", member, count, stride));
    return;
  }
  const char* at = reinterpret_cast<const char*>(first);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) {
    const auto kv = copy_struct<driftd_kv>(at);
    if (parse_text(kv.key, member.c_str()).empty()) out.wrong.push_back(member + ": an empty key");
    (void)parse_text(kv.value, member.c_str(), 8u << 10);
  }
}

driftd_status on_backend(void* user, const driftd_discovered* given) {
  auto& out = *static_cast<Discovery*>(user);
  const auto d = copy_struct<driftd_discovered>(given);
  Backend backend{parse_text(d.name, "backend.name"), parse_text(d.type, "backend.type"),
                  parse_text(d.config, "backend.config", kMaxConfigBytes), d.observed_ns};
  const std::string name = fmt::format("backend '{}'", backend.name);
  if (backend.name.empty() || backend.type.empty()) out.wrong.push_back(name + " lacks its name or its type");
  for (const auto& other : out.backends) {
    if (other.name == backend.name) out.wrong.push_back(name + " was pushed twice in one run");
  }
  const auto config = core::parse(backend.config.empty() ? "{}" : backend.config);
  if (!config || config->object() == nullptr) out.wrong.push_back(name + ": `config` is not a JSON object");
  (void)parse_text(d.version, "backend.version");
  (void)parse_text(d.origin, "backend.origin");
  (void)parse_text(d.revision, "backend.revision");
  check_texts(out, d.endpoints, d.endpoint_count, name + ": endpoints");
  check_texts(out, d.capabilities, d.capability_count, name + ": capabilities");
  check_pairs(out, d.credentials, d.credential_count, d.credential_stride, name + ": credentials");
  check_pairs(out, d.labels, d.label_count, d.label_stride, name + ": labels");
  check_pairs(out, d.metadata, d.metadata_count, d.metadata_stride, name + ": metadata");
  const bool taken = out.wrong.empty();
  out.backends.push_back(std::move(backend));
  return taken ? DRIFTD_OK : DRIFTD_INVALID;
}

std::pair<CallTrace, Discovery> run_discover(const Instance& instance, const driftd_discover_table& table,
                                             const std::vector<std::string>& types, CallFaults faults = {}) {
  const auto out = std::make_shared<Discovery>();
  CallTrace trace = instance
                        .start(Function::discover, std::move(faults),
                               [out, table, types, self = instance.raw()](driftd_call call, CallTrace&) {
                                 std::vector<driftd_str> wanted;
                                 for (const auto& type : types) wanted.push_back(str(type));
                                 const driftd_discover_args args{
                                     sizeof args, 0, wanted.empty() ? nullptr : wanted.data(), wanted.size()};
                                 driftd_discover_result result{sizeof result, 0, 0};
                                 const auto status = table.discover(self, call, &args, &on_backend, out.get(), &result);
                                 out->complete = result.complete != 0;
                                 return status;
                               })
                        .wait();
  if (!out->wrong.empty()) throw RuleBroken("discover: " + out->wrong.front());
  return {std::move(trace), *out};
}

template <class T>
T extension(const Instance& instance, const char* id) {
  const void* found = instance.provider().query(id, 1);
  if (found == nullptr) throw CheckNotApplicable(fmt::format("does not offer {}/1", id));
  return copy_struct<T>(found);
}

// ---- apply

struct ApplyOutcome {
  driftd_applied raw{};
  std::string text;
  int times = 0;
};

void on_outcome(void* user, const driftd_applied* given) {
  auto& out = *static_cast<ApplyOutcome*>(user);
  out.raw = copy_struct<driftd_applied>(given);
  out.text = parse_text(out.raw.text, "applied.text", 1u << 20);
  ++out.times;
}

struct ApplyRequest {
  Record record;
  std::string path, old_value, new_value, version, key;
  bool dry = true;
  std::string second = {};  ///< path of a second change, of an attribute that nothing has; empty: only one change
};

struct Applied {
  CallTrace trace;
  ApplyOutcome outcome;
};

void check_outcome(const ApplyRequest& request, const Applied& applied) {
  const auto& [trace, outcome] = applied;
  const std::string name =
      fmt::format("apply to {} ({})", render(identity_of(request.record)), request.dry ? "dry run" : "real");
  if (trace.status == DRIFTD_OK && outcome.times != 1) {
    throw RuleBroken(fmt::format("{} answered OK and pushed {} outcomes; expected one", name, outcome.times));
  }
  if (trace.status != DRIFTD_OK) return;
  const auto kind = outcome.raw.outcome;
  if (kind < DRIFTD_APPLY_SUCCESS || kind > DRIFTD_APPLY_REQUEUE_AFTER) {
    throw RuleBroken(fmt::format("{}: outcome {} is unknown", name, kind));
  }
  if (kind != DRIFTD_APPLY_SUCCESS && outcome.text.empty()) throw RuleBroken(name + ": an outcome without a text");
  if (kind == DRIFTD_APPLY_REQUEUE_AFTER && outcome.raw.requeue_after_ms < 1)
    throw RuleBroken(name + ": requeue after 0 ms");
  if (request.dry && outcome.raw.changed != 0) throw RuleBroken(name + " says that it changed the system");
}

Applied run_apply(const Instance& instance, const driftd_apply_table& table, const ApplyRequest& request) {
  const auto out = std::make_shared<ApplyOutcome>();
  Applied applied;
  applied.trace =
      instance
          .start(Function::apply, {},
                 [out, table, request, self = instance.raw()](driftd_call call, CallTrace&) {
                   static const std::string kOne = "1";
                   const driftd_change changes[] = {
                       {sizeof(driftd_change), 0, str(request.path), str(request.old_value), str(request.new_value)},
                       {sizeof(driftd_change), 1, str(request.second), {}, str(kOne)}};
                   const driftd_apply_args args{sizeof args,
                                                request.dry ? DRIFTD_APPLY_DRY_RUN : 0,
                                                str(request.record.id.kind),
                                                str(request.record.id.id),
                                                str(request.record.backend),
                                                str(request.version),
                                                str(request.key),
                                                changes,
                                                request.second.empty() ? 1u : 2u,
                                                sizeof(driftd_change)};
                   return table.apply(self, call, &args, &on_outcome, out.get());
                 })
          .wait();
  applied.outcome = *out;
  check_outcome(request, applied);
  return applied;
}

std::string other_value(const core::Value& value) {
  if (const bool* b = value.boolean()) return *b ? "false" : "true";
  if (const auto* s = value.string()) return core::render(core::Value(*s + "x"));
  if (value.number() != nullptr) return value.number()->token == "1" ? "2" : "1";
  return "\"x\"";
}

constexpr std::size_t kMaxRequests = 60, kMaxOfRecord = 6;

/// Adds a request for each scalar below `value`, up to the limit of its record.
void add_requests(const Record& record, const core::Value& value, const core::Path& path, std::size_t end,
                  std::vector<ApplyRequest>& to) {
  if (to.size() >= end || value.array() != nullptr) return;
  if (value.object() == nullptr) {
    if (!path.empty())
      to.push_back({record, path.render(), core::render(value), other_value(value), record.version, {}, true});
    return;
  }
  for (const auto& [key, member] : *value.object()) add_requests(record, member, path.child(key), end, to);
}

/// Makes a dry run for some scalars of each record, up to a limit.
std::vector<ApplyRequest> apply_requests(const Subject& subject, const CallTrace& listed) {
  auto random = random_of(subject, "refresh.apply");
  std::vector<ApplyRequest> out;
  for (const auto& record : listed.records) {
    const auto body = core::parse(record.body);
    if (!body || body->object() == nullptr) continue;
    add_requests(record, *body, {}, std::min(kMaxRequests, out.size() + kMaxOfRecord), out);
  }
  for (auto& request : out) request.key = random_word(random, 32);
  return out;
}

void expect_untouched(const Instance& instance, const Listing& before, const std::string& after) {
  const auto found = difference(instance.provider(), before, listing_of(list(instance)));
  if (!found.empty()) throw RuleBroken(fmt::format("{} changed the system: {}", after, found));
}

/// Makes a dry run that a provider must not call a success.
void must_refuse(const Instance& instance, const driftd_apply_table& table, const ApplyRequest& request,
                 const char* what) {
  const Applied applied = run_apply(instance, table, request);
  if (applied.trace.status == DRIFTD_OK && applied.outcome.raw.outcome == DRIFTD_APPLY_SUCCESS) {
    throw RuleBroken(fmt::format("apply to {} of {} answered success; expected it to be refused",
                                 render(identity_of(request.record)), what));
  }
}

/// Whatever is refused is refused before anything runs, so that dry runs tell.
void refusals(const Instance& instance, const driftd_apply_table& table, const ApplyRequest& accepted) {
  ApplyRequest secret = accepted;
  secret.new_value = R"({"$hmac":"key:1:00"})";
  secret.key += "-secret";
  must_refuse(instance, table, secret, "the digest of a secret");
  ApplyRequest half = accepted;
  half.second = "no_such_attribute_of_anything";
  half.key += "-half";
  must_refuse(instance, table, half, "an attribute that can be set and one that nothing has");
  ApplyRequest moved = accepted;
  moved.version.clear();
  moved.old_value = accepted.new_value;
  moved.new_value = accepted.old_value == "\"y\"" ? "\"z\"" : accepted.old_value == "3" ? "4" : "3";
  moved.key += "-moved";
  if (moved.new_value == moved.old_value) return;
  const Applied applied = run_apply(instance, table, moved);
  const bool refused = applied.trace.status == DRIFTD_OK && applied.outcome.raw.outcome == DRIFTD_APPLY_FAILED;
  if (applied.trace.status != DRIFTD_CONFLICT && !refused) {
    throw RuleBroken(
        fmt::format("apply to {} with an old value that is not there any more answered {}; expected conflict",
                    render(identity_of(moved.record)), applied.trace.why()));
  }
}

void conflict_and_keys(const Instance& instance, const driftd_apply_table& table, ApplyRequest request,
                       const Listing& before) {
  const std::string name = render(identity_of(request.record));
  if (!request.version.empty()) {
    ApplyRequest stale = request;
    stale.version += "-of-yesterday";
    stale.key += "-stale";
    const Applied applied = run_apply(instance, table, stale);
    if (applied.trace.status != DRIFTD_CONFLICT) {
      throw RuleBroken(fmt::format("apply to {} with a version that it does not have answered {}; expected conflict",
                                   name, applied.trace.why()));
    }
    expect_untouched(instance, before, "an apply that must be a CONFLICT");
  }
  request.new_value = request.old_value;  // a check never changes the real system
  request.dry = false;
  (void)run_apply(instance, table, request);
  const Applied again = run_apply(instance, table, request);
  if (again.trace.status == DRIFTD_OK && again.outcome.raw.changed != 0) {
    throw RuleBroken(fmt::format("apply to {}: the same idempotency key changed the system a second time", name));
  }
  expect_untouched(instance, before, "an apply of the value that stood there already");
}

}  // namespace

void discover(const Subject& subject) {
  const Instance instance(subject);
  const auto table = extension<driftd_discover_table>(instance, DRIFTD_EXT_DISCOVER);
  const auto [trace, all] = run_discover(instance, table, {});
  if (trace.status != DRIFTD_OK) throw CheckNotMade(fmt::format("discover answered {}", trace.why()));
  if (all.complete && !trace.diagnostics.empty()) {
    throw RuleBroken("discover says complete and also told what could not be looked at: " + trace.why());
  }
  std::set<std::string> types;
  for (const auto& backend : all.backends) types.insert(backend.type);
  types.insert("no-such-type");
  for (const auto& type : types) {
    for (const auto& backend : run_discover(instance, table, {type}).second.backends) {
      if (backend.type != type) {
        throw RuleBroken(fmt::format("asked for backends of type '{}' only, discover pushed '{}' of type '{}'", type,
                                     backend.name, backend.type));
      }
    }
  }
  for (std::uint64_t k = 0; k <= std::min<std::uint64_t>(trace.callbacks, 50); ++k) {
    CallFaults faults;
    faults.cancel_at = k;
    const auto [ended, part] = run_discover(instance, table, {}, faults);
    if (part.complete && part.backends.size() < all.backends.size() &&
        run_discover(instance, table, {}).second.backends.size() != part.backends.size()) {
      throw RuleBroken(fmt::format("cancelled at host function {}, discover says complete with {} of {} backends", k,
                                   part.backends.size(), all.backends.size()));
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (run_discover(instance, table, {}).second.backends == run_discover(instance, table, {}).second.backends) return;
  }
  throw RuleBroken("two discoveries never agree; a backend keeps its name, and they keep their order");
}

void apply(const Subject& subject) {
  const Instance instance(subject);
  const auto table = extension<driftd_apply_table>(instance, DRIFTD_EXT_APPLY);
  const CallTrace listed = list(instance);
  const Listing before = listing_of(listed);
  std::optional<ApplyRequest> accepted, refused;
  for (const auto& request : apply_requests(subject, listed)) {
    const Applied applied = run_apply(instance, table, request);
    const bool success = applied.trace.status == DRIFTD_OK && applied.outcome.raw.outcome == DRIFTD_APPLY_SUCCESS;
    if (success && !accepted) accepted = request;
    if (applied.trace.status == DRIFTD_OK && !refused) refused = request;
  }
  expect_untouched(instance, before, "a dry run");
  // A provider whose system, or whose rights, let nothing be put back keeps the other rules all the same.
  if (!accepted) accepted = refused;
  if (!accepted) throw CheckNotMade("no dry run of the first 60 attributes had an outcome");
  refusals(instance, table, *accepted);
  expect_untouched(instance, before, "a dry run that must be refused");
  conflict_and_keys(instance, table, *accepted, before);
  ApplyRequest gone = *accepted;
  gone.record.id.id = "no-such-resource";
  gone.key += "-gone";
  const Applied applied = run_apply(instance, table, gone);
  if (applied.trace.status != DRIFTD_NOT_FOUND) {
    throw RuleBroken(
        fmt::format("apply to a resource that is not there answered {}; expected not_found", applied.trace.why()));
  }
  expect_untouched(instance, before, "an apply to a resource that is not there");
}

}  // namespace driftd::check
