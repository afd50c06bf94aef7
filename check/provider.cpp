// SPDX-License-Identifier: Apache-2.0
// Loads the provider.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/documents.hpp"
#include "check/negotiate.hpp"
#include "check/subject.hpp"
#include "ipc/provider_info.hpp"
#include "worker/ask_plugin.hpp"
#include "worker/library.hpp"

namespace driftd::check {

namespace {

// These stand in for slots that the provider does not have.
driftd_status no_describe(driftd_push_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_schema(driftd_str, driftd_push_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_open(driftd_call, const driftd_open_args*, driftd_instance*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_read(driftd_instance, driftd_call, const driftd_identity*, std::uint32_t, std::uint32_t) {
  return DRIFTD_UNSUPPORTED;
}
driftd_status no_refresh(driftd_instance, driftd_call, const driftd_refresh_args*, driftd_refresh_result*) {
  return DRIFTD_UNSUPPORTED;
}
driftd_status no_diff(driftd_instance, const driftd_diff_args*, driftd_verdict_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_health(driftd_instance, driftd_call, driftd_health_fn, void*) { return DRIFTD_UNSUPPORTED; }
void no_wake(driftd_instance) {}
void no_close(driftd_instance) {}
const void* no_query(driftd_str, std::uint32_t) { return nullptr; }

driftd_provider_table full_size(const driftd_provider_table* given) {
  driftd_provider_table out{sizeof out,  0,        &no_describe, &no_schema, &no_open,  &no_read,
                            &no_refresh, &no_diff, &no_health,   &no_wake,   &no_close, &no_query};
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  std::memcpy(&out, given, std::min<std::size_t>(size, sizeof out));
  out.size = sizeof out;
  const void* slots[10];
  std::memcpy(slots, &out.describe, sizeof slots);
  for (const void* slot : slots) {
    if (slot == nullptr) throw CheckNotMade("the provider's table has a NULL slot; see negotiation.slots");
  }
  return out;
}

}  // namespace

const Provider& Provider::load(const Subject& subject) {
  static const Provider* loaded = [&] {
    auto* provider = new Provider;
    provider->table = full_size(static_cast<const driftd_provider_table*>(accepted(subject).table));
    return provider;
  }();
  return *loaded;
}

CallTrace Provider::describe() const {
  return ask_document("describe", [this](driftd_push_fn push, void* user) { return table.describe(push, user); });
}

CallTrace Provider::schema(const std::string& what) const {
  return ask_document("schema(\"" + what + "\")", [this, what](driftd_push_fn push, void* user) {
    return table.schema({what.data(), what.size()}, push, user);
  });
}

const ipc::LoadAnswer& Provider::loaded() const {
  static const ipc::LoadAnswer kLoaded = [this] {
    worker::Library library;
    library.table = table;
    library.file = "the provider";
    auto out = worker::ask_plugin(library);
    if (!out)
      throw CheckNotMade(fmt::format("{}; see schema.describe, schema.settings and schema.kinds", out.error().message));
    const auto declared = ipc::declared_extensions(out->describe);  // negotiation.whole_extensions checks that query
                                                                    // agrees
    out->extensions.assign(declared.begin(), declared.end());
    return *out;
  }();
  return kLoaded;
}

const core::ProviderInfo& Provider::info() const {
  static const auto kInfo = [this] {
    auto out = ipc::parse_info(loaded());
    if (!out) throw CheckNotMade(fmt::format("{}; see schema.describe and schema.kinds", out.error().message));
    return *out;
  }();
  return *kInfo;
}

const void* Provider::query(const char* id, std::uint32_t revision) const {
  return table.query({id, std::strlen(id)}, revision);
}

std::shared_ptr<const Declarations> Provider::declared(const std::map<std::string, std::string>& secrets) const {
  auto out = std::make_shared<Declarations>();
  out->kinds.insert(info().kinds.begin(), info().kinds.end());
  out->metrics = ipc::declared_metrics(loaded().describe);
  out->secrets = secrets;
  return out;
}

}  // namespace driftd::check
