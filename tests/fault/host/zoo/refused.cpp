// SPDX-License-Identifier: Apache-2.0
// Providers that must not get as far as open. Which one: the ZOO_ macro.
#include <unistd.h>
#include <cstdlib>
#include <cstring>

#include "driftd/ext/watch.h"
#include "driftd/provider.h"

namespace {

#if defined(ZOO_constructor_exits)
__attribute__((constructor)) void leave() { ::_exit(7); }
#endif

driftd_status push_text(driftd_push_fn push, void* user, const char* text) {
  push(user, {text, std::strlen(text)});
  return DRIFTD_OK;
}

driftd_status describe(driftd_push_fn push, void* user) {
#if defined(ZOO_describe_crashes)
  std::abort();
#endif
#if defined(ZOO_half_watch)
  return push_text(
      push, user,
      R"({"id":"z","version":"1","types":["z"],"kinds":["thing"],"extensions":[{"id":"driftd.watch","revision":1}]})");
#else
  return push_text(push, user, R"({"id":"z","version":"1","types":["z"],"kinds":["thing"]})");
#endif
}
driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
  const bool settings = what.len == 8 && std::memcmp(what.data, "settings", 8) == 0;
  if (settings) return push_text(push, user, R"({"type":"object"})");
#if defined(ZOO_bad_schema)
  return push_text(push, user, R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"atributes":{}})");
#else
  return push_text(
      push, user,
      R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"t","attributes":{}})");
#endif
}
driftd_status open(driftd_call, const driftd_open_args*, driftd_instance*) { return DRIFTD_OK; }
[[maybe_unused]] driftd_status read(driftd_instance, driftd_call, const driftd_identity*, uint32_t, uint32_t) {
  return DRIFTD_OK;
}
driftd_status refresh(driftd_instance, driftd_call, const driftd_refresh_args*, driftd_refresh_result*) {
  return DRIFTD_OK;
}
driftd_status diff(driftd_instance, const driftd_diff_args*, driftd_verdict_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status health(driftd_instance, driftd_call, driftd_health_fn, void*) { return DRIFTD_OK; }
void wake(driftd_instance) {}
void close(driftd_instance) {}
const void* query(driftd_str, uint32_t) {
#if defined(ZOO_half_describe)
  static const driftd_watch_table kWatch{
      sizeof(driftd_watch_table), 0,
      [](driftd_instance, driftd_call, const driftd_watch_args*) -> driftd_status { return DRIFTD_OK; }};
  return &kWatch;
#else
  return nullptr;
#endif
}

}  // namespace

#if defined(ZOO_missing_symbol)
extern "C" DRIFTD_EXPORT driftd_status driftd_provider_v9(const driftd_host_table*, const driftd_offer*,
                                                          driftd_accept* out) {
#else
extern "C" DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table*, const driftd_offer*,
                                                          driftd_accept* out) {
#endif
  static driftd_provider_table table{sizeof table, 0,     &describe, &schema, &open,  &read,
                                     &refresh,     &diff, &health,   &wake,   &close, &query};
#if defined(ZOO_null_slot)
  table.read = nullptr;
#endif
  out->minor_built = DRIFTD_ABI_MINOR;
  out->table = &table;
#if defined(ZOO_wrong_version)
  out->minor_built = 4;
  out->minor_needed = 3;
  return DRIFTD_UNSUPPORTED;
#else
  return DRIFTD_OK;
#endif
}
