// SPDX-License-Identifier: Apache-2.0
// Values of diff and of the extensions: owning counterparts of the ABI's structs.
#pragma once

#include "driftd/ext/apply.h"
#include "driftd/ext/discover.h"
#include "driftd/ext/upgrade.h"
#include "driftd/ext/watch.h"
#include "driftd/sdk/call.hpp"

namespace driftd::sdk {

/// A difference that the host found; values are JSON text, empty: absent.
struct Change {
  std::uint32_t index = 0;
  std::string path, old_value, new_value;
};
/// Demotes a change: DRIFTD_VERDICT_EQUIVALENT or DRIFTD_VERDICT_UNSETTLED, and why.
struct Verdict {
  std::uint32_t index = 0, verdict = DRIFTD_VERDICT_EQUIVALENT;
  std::string reason;
};

/// A backend that this instance knows of (driftd_discovered).
struct Backend {
  std::string name{}, type{};
  bool external = false;
  std::string version{}, config = "{}", origin{}, revision{};
  std::vector<std::string> endpoints{}, capabilities{};
  std::map<std::string, std::string> credentials{}, labels{}, metadata{};
  std::int64_t observed_ns = 0;  ///< 0: when the call began
};
struct Discovery {
  bool complete = false;  ///< every backend was pushed
  std::int64_t next_ms = 0;
};

/// Takes what a discovery finds. Lives on the stack of the call.
class Discoverer {
 public:
  Discoverer(const Call& call, const driftd_discover_args& args, driftd_discovered_fn push, void* user)
      : call_(call), args_(args), push_(push), user_(user) {}
  /// The host asked for backends of this type.
  bool wants(std::string_view type) const {
    for (std::uint64_t i = 0; i < args_.type_count; ++i) {
      if (view(args_.types[i]) == type) return true;
    }
    return args_.type_count == 0;
  }
  /// One of a type that the host did not ask for is passed over. A refusal of the host throws Failure.
  void push(const Backend& b) const {
    if (!wants(b.type)) return;
    const auto endpoints = texts(b.endpoints), capabilities = texts(b.capabilities);
    const auto credentials = pairs(b.credentials), labels = pairs(b.labels), metadata = pairs(b.metadata);
    driftd_discovered out{};
    out.size = sizeof out;
    out.flags = b.external ? DRIFTD_BACKEND_EXTERNAL : 0;
    out.name = str(b.name);
    out.type = str(b.type);
    out.version = str(b.version);
    out.config = str(b.config);
    out.origin = str(b.origin);
    out.revision = str(b.revision);
    out.endpoints = endpoints.data();
    out.endpoint_count = endpoints.size();
    out.capabilities = capabilities.data();
    out.capability_count = capabilities.size();
    out.credentials = credentials.data();
    out.credential_count = static_cast<std::uint32_t>(credentials.size());
    out.labels = labels.data();
    out.label_count = static_cast<std::uint32_t>(labels.size());
    out.metadata = metadata.data();
    out.metadata_count = static_cast<std::uint32_t>(metadata.size());
    out.credential_stride = out.label_stride = out.metadata_stride = sizeof(driftd_kv);
    out.observed_ns = b.observed_ns != 0 ? b.observed_ns : call_.started_ns();
    const driftd_status status = push_(user_, &out);
    if (status != DRIFTD_OK) throw Failure(status, "the host refused the backend " + b.name);
  }

  static std::vector<driftd_str> texts(const std::vector<std::string>& from) {
    std::vector<driftd_str> out;
    for (const auto& text : from) out.push_back(str(text));
    return out;
  }
  static std::vector<driftd_kv> pairs(const std::map<std::string, std::string>& from) {
    std::vector<driftd_kv> out;
    for (const auto& [key, value] : from) out.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
    return out;
  }

 private:
  const Call& call_;
  const driftd_discover_args& args_;
  driftd_discovered_fn push_;
  void* user_;
};

/// Known values to put back (driftd_apply_args).
struct Apply {
  bool dry_run = true;
  Identity id;
  std::string expected_version, key;
  std::vector<Change> changes;
};
/// What came of it (driftd_applied).
struct Applied {
  std::uint32_t outcome = DRIFTD_APPLY_SUCCESS;
  bool changed = false;
  std::int64_t requeue_after_ms = 0;
  std::string version{}, text{};
  std::map<std::string, std::string> details{};
};

}  // namespace driftd::sdk
