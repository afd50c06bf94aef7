// SPDX-License-Identifier: Apache-2.0
// Values of diff and of the extensions: owning counterparts of the ABI's structs.
#pragma once

#include "driftd/ext/apply.h"
#include "driftd/ext/discover.h"
#include "driftd/ext/upgrade.h"
#include "driftd/ext/watch.h"
#include "driftd/sdk/call.hpp"

namespace driftd::sdk {

/// A difference that the host found (driftd_change), for diff() and apply().
struct Change {
  std::uint32_t index = 0;           ///< in the list that it came with
  std::string path;                  ///< attribute path
  std::string old_value, new_value;  ///< JSON text; empty: absent
};
/// Demotes a change that the host found (driftd_verdict).
struct Verdict {
  std::uint32_t index = 0;                            ///< Change::index
  std::uint32_t verdict = DRIFTD_VERDICT_EQUIVALENT;  ///< or DRIFTD_VERDICT_UNSETTLED
  std::string reason;                                 ///< shown by `driftd explain`; required
};

/// A backend that this instance knows of (driftd_discovered).
struct Backend {
  std::string name{};                                ///< unique in this instance and the same each time; required
  std::string type{};                                ///< a backend type or alias: "postgres"; required
  bool external = false;                             ///< runs outside of the system that names it
  std::string version{};                             ///< of its server; empty: unknown
  std::string config = "{}";                         ///< JSON object of settings; no secret
  std::string origin{};                              ///< what defines it; empty: the provider's id
  std::string revision{};                            ///< of what defines it; opaque
  std::vector<std::string> endpoints{};              ///< "host:port" or URLs, the best first
  std::vector<std::string> capabilities{};           ///< "read-replica", "tls"
  std::map<std::string, std::string> credentials{};  ///< setting path → reference, never the value
  std::map<std::string, std::string> labels{};       ///< what routes and filters select by
  std::map<std::string, std::string> metadata{};     ///< goes into the event
  std::int64_t observed_ns = 0;                      ///< wall clock when the request was sent; 0: when the call began
};
/// How a discovery ended (driftd_discover_result).
struct Discovery {
  bool complete = false;     ///< every backend was pushed; only then a missing one can count as gone
  std::int64_t next_ms = 0;  ///< when to discover again; 0: the host's interval
};

/// Takes what a discovery finds. Made by the SDK on the stack of the call; only on its thread. Borrows the call and its
/// arguments.
class Discoverer {
 public:
  Discoverer(const Call& call, const driftd_discover_args& args, driftd_discovered_fn push, void* user)
      : call_(call),
        args_(args),
        push_(push),
        user_(user) {}
  /// Returns true if the host asked for backends of this type.
  bool wants(std::string_view type) const {
    for (std::uint64_t i = 0; i < args_.type_count; ++i) {
      if (view(args_.types[i]) == type) return true;
    }
    return args_.type_count == 0;
  }
  /// Reports one backend, which the host copies. One of a type that the host did not ask for is passed over. Throws
  /// Failure with any status of the host but OK (driftd_discovered_fn says which there are).
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

  /// Borrows each text of the list, for as long as the list lives.
  static std::vector<driftd_str> texts(const std::vector<std::string>& from) {
    std::vector<driftd_str> out;
    for (const auto& text : from) out.push_back(str(text));
    return out;
  }
  /// Borrows each key and value of the map, for as long as the map lives.
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
  bool dry_run = true;           ///< change nothing and answer as the real call would
  Identity id;                   ///< of a resource that exists: it is neither created nor deleted
  std::string expected_version;  ///< Record::version that was judged; empty: compare each old_value instead
  std::string key;               ///< idempotency key: the same one again is the same change, made at most once
  std::vector<Change> changes;   ///< all of them or none; old_value: as found now, new_value: to put back
};
/// What came of it (driftd_applied).
struct Applied {
  std::uint32_t outcome = DRIFTD_APPLY_SUCCESS;  ///< DRIFTD_APPLY_*
  bool changed = false;                          ///< this call changed the system; never in a dry run
  std::int64_t requeue_after_ms = 0;             ///< REQUEUE_AFTER: at least 1
  std::string version{};                         ///< of the resource afterwards; empty: unknown
  std::string text{};                            ///< one sentence, required unless SUCCESS; no secret
  std::map<std::string, std::string> details{};  ///< for the audit log, beside the three lists below
  std::vector<std::string> commands{};           ///< DRIFTD_APPLY_COMMAND: that ran, or would run; in order
  std::vector<std::string> undo{};               ///< DRIFTD_APPLY_UNDO: what takes them back, in order
  std::vector<std::string> left{};               ///< DRIFTD_APPLY_LEFT: paths that a failed call could not take back
};

}  // namespace driftd::sdk
