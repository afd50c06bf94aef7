// SPDX-License-Identifier: Apache-2.0
#include "worker/abi_input.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/digest.hpp"
#include "base/secret_text.hpp"
#include "core/redact.hpp"
#include "core/scope.hpp"
#include "core/stand_in.hpp"
#include "core/value/value.hpp"
#include "worker/host_table.hpp"

namespace driftd::worker {
namespace {

Result<std::string> name(driftd_str given, const char* member, std::size_t max_bytes = ipc::kMaxName) {
  if (given.data == nullptr && given.len != 0)
    return fail(Code::invalid, fmt::format("`{}` is NULL with a length", member));
  if (given.len > max_bytes)
    return fail(Code::invalid, fmt::format("`{}` has {} bytes, at most {}", member, given.len, max_bytes));
  if (!ipc::is_utf8(view(given))) return fail(Code::invalid, fmt::format("`{}` is not UTF-8", member));
  return std::string(view(given));
}

template <class T>
Result<std::vector<T>> elements(const T* first, std::uint32_t count, std::uint32_t stride, const char* member) {
  std::vector<T> out;
  if (count == 0) return out;
  if (first == nullptr || stride < sizeof(std::uint32_t) || count > ipc::kMaxListItems) {
    return fail(Code::invalid, fmt::format("`{}`: {} elements of {} bytes at {}", member, count, stride,
                                           first == nullptr ? "NULL" : "an address"));
  }
  const char* at = reinterpret_cast<const char*>(first);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) out.push_back(adopt<T>(at));
  return out;
}

/// An array of driftd_kv as a struct of the ABI describes it.
struct Pairs {
  const driftd_kv* first;
  std::uint32_t count, stride;
  const char* member;
};
Result<std::map<std::string, std::string>> pairs(const LoadedInstance& instance, Pairs given) {
  std::map<std::string, std::string> out;
  DRIFTD_TRY(const auto all, elements(given.first, given.count, given.stride, given.member));
  for (const auto& kv : all) {
    DRIFTD_TRY(std::string key, name(kv.key, given.member));
    DRIFTD_TRY(std::string value, name(kv.value, given.member, ipc::kMaxText));
    out[std::move(key)] = core::Disclosure::shown_text(instance.scrubber.document(std::move(value)));
  }
  return out;
}

/// Returns only `defined_in` of metadata that breaks a limit. A source reports backends of many namespaces, and without
/// this member the agent would not know from which one a record or backend comes.
std::map<std::string, std::string> only_defined_in(const LoadedInstance& instance, Pairs given) {
  const auto all = elements(given.first, given.count, given.stride, given.member);
  if (!all) return {};
  for (const auto& kv : *all) {
    if (view(kv.key) != core::kDefinedIn) continue;
    auto value = name(kv.value, given.member, ipc::kMaxText);
    if (value)
      return {
          {std::string(core::kDefinedIn), core::Disclosure::shown_text(instance.scrubber.document(std::move(*value)))}};
  }
  return {};
}

Result<std::vector<std::string>> texts(const driftd_str* first, std::uint64_t count, const char* member) {
  std::vector<std::string> out;
  if (count > ipc::kMaxListItems || (first == nullptr && count != 0)) {
    return fail(Code::invalid, fmt::format("`{}` is NULL or too long", member));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    DRIFTD_TRY(std::string text, name(first[i], member));
    out.push_back(std::move(text));
  }
  return out;
}

Status read_unread(const LoadedInstance& instance, const driftd_record& record, core::Observation& out) {
  DRIFTD_TRY(const auto unread, elements(record.unread, record.unread_count, record.unread_stride, "unread"));
  for (const auto& u : unread) {
    DRIFTD_TRY(std::string path, name(u.path, "unread.path"));
    out.unread.push_back(
        {std::move(path), code_of(u.code), instance.scrubber.printable(view(u.reason), ipc::kMaxText)});
  }
  return {};
}

/// Reads a JSON object beside the body; {} if it is empty. It is shown and never compared, so possible secrets in it
/// are removed without a digest.
Result<std::string> read_object(const LoadedInstance& instance, driftd_str given, const core::ResourceId& id,
                                const char* member) {
  if (given.len == 0) return "{}";
  DRIFTD_TRY(const std::string text, name(given, member, ipc::kMaxBody / 4));
  DRIFTD_TRY(const core::Value parsed, core::parse(text));
  if (parsed.object() == nullptr) return fail(Code::invalid, fmt::format("`{}` is not a JSON object", member));
  return instance.scrubber.document(core::render(instance.disclosure.status(id, parsed)));
}

Status read_body(LoadedInstance& instance, const driftd_record& record, core::Observation& out) {
  if (out.tombstone) {
    out.body = "{}";
    return {};
  }
  DRIFTD_TRY(const std::string raw, name(record.body, "body", ipc::kMaxBody));
  DRIFTD_TRY(const auto sensitive, texts(record.sensitive, record.sensitive_count, "sensitive"));
  const auto schema = instance.info->schemas.find(out.id.kind);
  const bool declared = schema != instance.info->schemas.end();
  const auto known = declared ? schema->second : core::KindSchema::unknown(out.id.kind);
  // The agent reads a declaration for another backend by the schema of that backend. A digest made here could not be
  // compared with the one of the live resource.
  const auto* disclosure = out.backend.empty() ? &instance.disclosure : nullptr;
  auto body = core::redact(raw, out.id, *known, sensitive, instance.key, disclosure);
  if (!body) return fail(Code::invalid, "`body`: " + instance.scrubber.text(body.error().message));
  out.body = instance.scrubber.document(std::move(*body));
  return {};
}

Digest digest_of(std::uint64_t seed, const core::Observation& o) {
  std::string unread;
  for (const auto& u : o.unread) unread += fmt::format("{}:{}={};", u.path.size(), u.path, static_cast<int>(u.code));
  return digest(seed, {o.id.kind, o.id.id, o.external_name, o.body, unread});
}

/// Reads the backend that a record is about; empty if it is the instance's own, which a source may also name.
Result<std::string> read_backend(const LoadedInstance& instance, driftd_str given) {
  DRIFTD_TRY(std::string backend, name(given, "backend"));
  return backend == instance.open.backend ? std::string() : std::move(backend);
}

/// Reads kind and backend, without which a record cannot be assigned to anything.
Status read_kind_and_backend(const LoadedInstance& instance, const driftd_record& record, core::Observation& out) {
  DRIFTD_TRY(out.id.kind, name(record.kind, "kind"));
  if (out.id.kind.empty()) return fail(Code::invalid, "`kind` must not be empty");
  if (core::is_own_kind(out.id.kind))
    return fail(Code::invalid, fmt::format("kind `{}` is reserved for the agent", out.id.kind));
  DRIFTD_TRY(out.backend, read_backend(instance, record.backend));
  if (out.backend.empty() && !instance.info->schemas.contains(out.id.kind)) {
    return fail(Code::invalid, fmt::format("kind `{}` is not declared in describe().kinds", out.id.kind));
  }
  return {};
}

/// Reads the members that a record can do without. A member that breaks its rule is dropped, and the rest is judged as
/// usual.
Status read_optional_members(const LoadedInstance& instance, const driftd_record& record, core::Observation& out) {
  Status fault;
  const auto keep = [&fault](auto& to, auto taken) {
    if (taken)
      to = std::move(*taken);
    else if (fault)
      fault = fail(taken.error());
  };
  keep(out.version, name(record.version, "version"));
  keep(out.external_name, name(record.external_name, "external_name"));
  keep(out.origin, name(record.origin, "origin"));
  const Pairs metadata{record.metadata, record.metadata_count, record.metadata_stride, "metadata"};
  out.metadata = only_defined_in(instance, metadata);
  keep(out.metadata, pairs(instance, metadata));
  out.status = "{}";
  keep(out.status, read_object(instance, record.status, out.id, "status"));
  return fault;
}

/// Reads the id. Some systems have things with an empty name (a Kafka group, for one); such a record must not affect
/// the others. An id that begins like a stand-in is refused, because it could equal the stand-in of another record.
Result<std::string> read_id(const driftd_record& record) {
  if (view(record.id).empty()) return fail(Code::invalid, "`id` must not be empty");
  if (view(record.id).starts_with(core::kStandIn)) {
    return fail(
        Code::invalid,
        fmt::format("`id` must not begin with {}: it is kept for records whose id cannot be taken", core::kStandIn));
  }
  return name(record.id, "id");
}

/// Reads what is judged: id, body, and which parts of it are secret or unread.
Status read_judged_members(LoadedInstance& instance, const driftd_record& record, core::Observation& out) {
  DRIFTD_TRY(out.id.id, read_id(record));
  DRIFTD_CHECK(read_unread(instance, record, out));
  DRIFTD_CHECK(read_body(instance, record, out));
  if (approximate_size(out) <= ipc::kMaxRedacted) return {};
  return fail(Code::invalid, fmt::format("the record has {} bytes, at most {}: its secrets stand in it as digests",
                                         approximate_size(out), ipc::kMaxRedacted));
}

/// Makes a stand-in for an id that cannot be used: its printable beginning and a hash of all its bytes, so that two
/// different ids get two stand-ins.
std::string make_stand_in(driftd_str id) {
  constexpr std::size_t kShown = 256;
  return fmt::format("{}{}~{}", core::kStandIn, ipc::printable(view(id), kShown),
                     to_hex(sha256(view(id))).substr(0, 32));
}

struct RecordInput {
  core::Observation record;
  std::string fault;  ///< empty if the record breaks no rule
};

Result<RecordInput> read_record(LoadedInstance& instance, const driftd_record& record) {
  RecordInput out;
  core::Observation& to = out.record;
  DRIFTD_CHECK(read_kind_and_backend(instance, record, to));
  to.tombstone = record.tombstone != 0;
  to.observed_ns = record.observed_ns;
  to.schema_revision = std::max(1u, record.schema_revision);
  const auto id = read_id(record);
  to.id.id = id ? *id : make_stand_in(record.id);
  if (const auto status = read_optional_members(instance, record, to); !status) out.fault = status.error().message;
  if (const auto status = read_judged_members(instance, record, to); !status) {
    out.fault = status.error().message;
    to.body = "{}";
    to.status = "{}";
    std::erase_if(to.metadata, [](const auto& item) { return item.first != core::kDefinedIn; });
    to.unread = {{"**", Code::corrupt, instance.scrubber.printable(out.fault, ipc::kMaxText)}};
  }
  to.digest = digest_of(instance.open.digest_seed, to);
  return out;
}

/// Makes the record of one that the agent knows by its digest. All of it was checked when it was sent as a whole, but
/// its version, which may be another one.
core::Observation digest_of_known(const driftd_record& record, const Digest& digest) {
  core::Observation out;
  out.id = {std::string(view(record.kind)), std::string(view(record.id))};
  if (auto version = name(record.version, "version")) out.version = std::move(*version);
  out.observed_ns = record.observed_ns;
  out.digest = digest;
  out.digest_only = true;
  return out;
}

/// Makes the diagnostic of a record that breaks a rule. If it is about another backend, the diagnostic is assigned to
/// that one, where it is defined, and not to the source.
core::Diagnostic make_diagnostic(const core::Observation& record, std::string text) {
  core::Diagnostic out;
  out.code = Code::corrupt;
  out.kind = record.id.kind;
  out.id = record.id.id;
  out.text = std::move(text);
  out.backend = record.backend;
  if (!record.backend.empty()) out.path = core::defined_in(record.metadata);
  return out;
}

}  // namespace

std::vector<driftd_change> borrowed(const std::vector<ipc::DemoteChange>& changes) {
  std::vector<driftd_change> out;
  for (const auto& c : changes)
    out.push_back({sizeof(driftd_change), c.index, str(c.path), str(c.old_value), str(c.new_value)});
  return out;
}

Result<EmittedRecords> read_records(LoadedInstance& instance, const driftd_record* records, std::uint32_t count,
                                    std::uint32_t stride, bool refresh) {
  if (count != 0 && (records == nullptr || stride < sizeof(std::uint32_t))) {
    return fail(Code::invalid, fmt::format("emit: {} records with stride {}", count, stride));
  }
  EmittedRecords out;
  const char* at = reinterpret_cast<const char*>(records);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) {
    const auto record = adopt<driftd_record>(at);
    const auto raw = refresh ? instance.sent.raw_of(record, instance.open.backend) : std::nullopt;
    if (const auto known = raw ? instance.sent.known(record, *raw) : std::nullopt) {
      out.records.push_back(digest_of_known(record, *known));
      continue;
    }
    auto taken = read_record(instance, record);
    const auto text = [&](const std::string& fault) {
      return fmt::format("emit: record {} ({}/{}): {}", i, instance.scrubber.printable(view(record.kind), 64),
                         instance.scrubber.printable(view(record.id), 64), fault);
    };
    if (!taken) return fail(Code::invalid, text(taken.error().message));
    if (!taken->fault.empty())
      out.faults.push_back(make_diagnostic(taken->record, instance.scrubber.text(text(taken->fault))));
    if (raw && taken->fault.empty())
      instance.sent.sent(*raw, taken->record.digest);
    else if (raw)
      instance.sent.forget(*raw);
    out.records.push_back(std::move(taken->record));
  }
  return out;
}

Result<core::Mark> read_mark(const LoadedInstance& instance, const driftd_mark& mark) {
  core::Mark out;
  if (mark.type < DRIFTD_MARK_CHECKPOINT || mark.type > DRIFTD_MARK_BOOKMARK) {
    return fail(Code::invalid, fmt::format("mark: type {} is unknown", mark.type));
  }
  out.type = static_cast<core::Mark::Type>(mark.type);
  DRIFTD_TRY(out.kind, name(mark.kind, "kind"));
  out.cursor = std::string(view(mark.cursor).substr(0, ipc::kMaxCursor));
  out.count = mark.count;
  if (mark.cursor.len > ipc::kMaxCursor) return fail(Code::invalid, "mark: the cursor is longer than 64 KiB");
  if (out.type == core::Mark::Type::complete && out.kind.empty())
    return fail(Code::invalid, "mark: COMPLETE without a kind");
  DRIFTD_TRY(out.backend, read_backend(instance, mark.backend));
  const auto& kinds = instance.info->kinds;
  if (!out.kind.empty() && out.backend.empty() && std::find(kinds.begin(), kinds.end(), out.kind) == kinds.end())
    return fail(Code::invalid, fmt::format("mark: kind `{}` is not declared in describe().kinds", out.kind));
  return out;
}

/// A text for people is accepted even if it breaks a rule, because it may be the only information about a failure.
struct Text {
  const char* member;
  driftd_str given;
};
void report_bad_texts(LoadedInstance& instance, const char* function, std::initializer_list<Text> texts) {
  for (const auto& text : texts) {
    const auto taken = name(text.given, text.member, ipc::kMaxText);
    if (!taken) instance.misuse(fmt::format("{}: {}", function, taken.error().message));
  }
}

std::string other_backend(const LoadedInstance& instance, driftd_str backend) {
  std::string out = ipc::printable(view(backend), ipc::kMaxName);
  return out == instance.open.backend ? std::string() : out;
}

core::Diagnostic read_diagnostic(LoadedInstance& instance, const driftd_diagnostic& given) {
  report_bad_texts(instance, "diag", {{"path", given.path}, {"text", given.text}, {"right", given.right}});
  const auto clean = [&](driftd_str s) { return instance.scrubber.printable(view(s), ipc::kMaxText); };
  // identities are compared with the requested ones, so they are never scrubbed
  return {code_of(given.code),
          ipc::printable(view(given.kind), ipc::kMaxName),
          ipc::printable(view(given.id), ipc::kMaxName),
          clean(given.path),
          clean(given.text),
          clean(given.right),
          given.retry_after_ms,
          other_backend(instance, given.backend)};
}

core::HealthReport read_health(LoadedInstance& instance, const driftd_health& given) {
  report_bad_texts(instance, "health",
                   {{"reason", given.reason}, {"role", given.role}, {"server_version", given.server_version}});
  const auto clean = [&](driftd_str s) { return instance.scrubber.printable(view(s), ipc::kMaxText); };
  using State = core::HealthReport::State;
  const State state = given.state <= DRIFTD_HEALTH_DOWN ? static_cast<State>(given.state) : State::unknown;
  return {state,
          given.latency_us,
          clean(given.reason),
          clean(given.role),
          clean(given.system_identity),
          clean(given.server_version)};
}

std::string read_defined_in(const LoadedInstance& instance, const driftd_discovered& backend) {
  return core::defined_in(
      only_defined_in(instance, {backend.metadata, backend.metadata_count, backend.metadata_stride, "metadata"}));
}

Result<BackendInput> read_discovered(const LoadedInstance& instance, const driftd_discovered& backend) {
  BackendInput taken;
  core::Discovered& out = taken.backend;
  DRIFTD_TRY(out.name, name(backend.name, "name"));
  DRIFTD_TRY(out.type, name(backend.type, "type"));
  if (out.name.empty() || out.type.empty()) return fail(Code::invalid, "`name` and `type` must not be empty");
  out.external = (backend.flags & DRIFTD_BACKEND_EXTERNAL) != 0;
  DRIFTD_TRY(out.version, name(backend.version, "version"));
  DRIFTD_TRY(out.origin, name(backend.origin, "origin"));
  DRIFTD_TRY(out.revision, name(backend.revision, "revision"));
  DRIFTD_TRY(out.config, read_object(instance, backend.config, {"registration", out.name}, "config"));
  DRIFTD_TRY(out.endpoints, texts(backend.endpoints, backend.endpoint_count, "endpoints"));
  for (auto& endpoint : out.endpoints) endpoint = without_credentials(endpoint);
  DRIFTD_TRY(out.capabilities, texts(backend.capabilities, backend.capability_count, "capabilities"));
  DRIFTD_TRY(out.credentials, pairs(instance, {backend.credentials, backend.credential_count, backend.credential_stride,
                                               "credentials"}));
  DRIFTD_TRY(out.labels, pairs(instance, {backend.labels, backend.label_count, backend.label_stride, "labels"}));
  const Pairs metadata{backend.metadata, backend.metadata_count, backend.metadata_stride, "metadata"};
  auto all_metadata = pairs(instance, metadata);
  if (!all_metadata) taken.fault = all_metadata.error().message;
  out.metadata = all_metadata ? std::move(*all_metadata) : only_defined_in(instance, metadata);
  out.observed_ns = backend.observed_ns;
  return taken;
}

}  // namespace driftd::worker
