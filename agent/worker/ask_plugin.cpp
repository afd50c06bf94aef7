// SPDX-License-Identifier: Apache-2.0
#include "worker/ask_plugin.hpp"

#include <fmt/format.h>
#include <string>

#include "ipc/limits.hpp"
#include "ipc/provider_info.hpp"
#include "worker/library.hpp"

namespace driftd::worker {
namespace {

struct PushedText {
  std::string text;
  int times = 0;
};

void keep(void* user, driftd_str text) {
  auto& pushed = *static_cast<PushedText*>(user);
  ++pushed.times;
  if (text.len <= ipc::kMaxDocument) pushed.text.assign(text.data, text.len);
}

Result<std::string> checked(const std::string& file, const std::string& what, driftd_status status, PushedText pushed) {
  if (status != DRIFTD_OK || pushed.times != 1 || pushed.text.empty()) {
    return fail(Code::invalid, fmt::format("{}: {} must push one JSON document of at most 1 MiB and answer OK; it "
                                           "answered {} and pushed {}",
                                           file, what, status, pushed.times));
  }
  return std::move(pushed.text);
}

/// Asks twice and compares. Both functions are [pure]; a text that differs would be another contract at each start.
template <class Ask>
Result<std::string> ask_twice(const std::string& file, const std::string& what, Ask ask) {
  std::string texts[2];
  for (auto& text : texts) {
    PushedText pushed;
    const driftd_status status = ask(&pushed);
    DRIFTD_TRY(text, checked(file, what, status, std::move(pushed)));
  }
  if (texts[0] != texts[1]) {
    return fail(Code::invalid,
                fmt::format("{}: {} answered another text the second time; it must be the same bytes for "
                            "one build of the plugin",
                            file, what));
  }
  return std::move(texts[0]);
}

Result<std::string> ask_schema(const Library& library, const std::string& what) {
  return ask_twice(library.file, "schema(\"" + what + "\")", [&](PushedText* into) {
    return library.table.schema({what.data(), what.size()}, &keep, into);
  });
}

}  // namespace

Result<ipc::LoadAnswer> ask_plugin(const Library& library) {
  ipc::LoadAnswer loaded;
  loaded.file = library.file;
  const auto describe_into = [&](PushedText* into) { return library.table.describe(&keep, into); };
  DRIFTD_TRY(loaded.describe, ask_twice(library.file, "describe", describe_into));
  loaded.sink = library.sink.has_value();
  DRIFTD_TRY(loaded.settings_schema, ask_schema(library, "settings"));
  if (loaded.sink) return loaded;
  DRIFTD_TRY(const auto kinds, ipc::declared_kinds(loaded.describe, library.file));
  for (const auto& kind : kinds) {
    DRIFTD_TRY(loaded.kinds[kind], ask_schema(library, kind));
  }
  return loaded;
}

}  // namespace driftd::worker
