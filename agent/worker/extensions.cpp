// SPDX-License-Identifier: Apache-2.0
#include "worker/extensions.hpp"

#include <fmt/format.h>

#include "ipc/provider_info.hpp"
#include "worker/library.hpp"
#include "worker/negotiate.hpp"

namespace driftd::worker {
namespace {

/// Sizes of the tables in the first release of their revision, which every plugin has. Never changed.
constexpr std::size_t kFirstWatch = 16, kFirstDiscover = 16, kFirstUpgrade = 16, kFirstApply = 16;

struct Known {
  core::Extension id;
  OwnTable table;
};

/// Returns the extensions that this host knows, each with its table in `into`.
std::vector<Known> known(Extensions& into) {
  return {
      {{DRIFTD_EXT_APPLY, DRIFTD_EXT_APPLY_REVISION}, {&into.apply, sizeof into.apply, kFirstApply, {"apply"}}},
      {{DRIFTD_EXT_DISCOVER, DRIFTD_EXT_DISCOVER_REVISION},
       {&into.discover, sizeof into.discover, kFirstDiscover, {"discover"}}},
      {{DRIFTD_EXT_UPGRADE, DRIFTD_EXT_UPGRADE_REVISION},
       {&into.upgrade, sizeof into.upgrade, kFirstUpgrade, {"upgrade"}}},
      {{DRIFTD_EXT_WATCH, DRIFTD_EXT_WATCH_REVISION}, {&into.watch, sizeof into.watch, kFirstWatch, {"watch"}}},
  };
}

Status adopt_one(const Library& library, const Known& extension, bool declared, std::vector<core::Extension>& offered) {
  const void* peer = library.table.query({extension.id.id.data(), extension.id.id.size()}, extension.id.revision);
  if (peer == nullptr && !declared) return {};
  const std::string half = fmt::format("{}: half of extension {}", library.file, core::render(extension.id));
  if (peer == nullptr) {
    return fail(Code::invalid, half + ": describe lists it, but query answers NULL; the function table is missing");
  }
  if (!declared) {
    return fail(Code::invalid, half + ": query answers a table, but `extensions` of describe does not list it");
  }
  DRIFTD_CHECK(adopt_table(extension.table, peer, half));
  offered.push_back(extension.id);
  return {};
}

Result<Extensions> adopt_all(const Library& library) {
  Extensions out;
  const auto declared = ipc::declared_extensions(library.loaded.describe);
  for (const auto& extension : known(out)) {
    DRIFTD_CHECK(adopt_one(library, extension, declared.contains(extension.id), out.offered));
  }
  return out;
}

}  // namespace

Result<Extensions> adopt_extensions(const Library& library) {
  try {
    return adopt_all(library);
  } catch (const std::exception& e) {
    return fail(Code::internal, fmt::format("{}: an exception crossed the ABI: {}", library.file, e.what()));
  } catch (...) {
    return fail(Code::internal, library.file + ": an exception crossed the ABI");
  }
}

}  // namespace driftd::worker
