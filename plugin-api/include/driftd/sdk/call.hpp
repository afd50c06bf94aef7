// SPDX-License-Identifier: Apache-2.0
// What a provider function may ask of the host while it runs: driftd_host_table in C++.
#pragma once

#include <functional>
#include <initializer_list>
#include <utility>

#include "driftd/sdk/types.hpp"

namespace driftd::sdk {

/// The host's table as handed to driftd_provider_v1, which sets it before any call. It belongs to the host and lives as
/// long as the process; take_host() in older_host.hpp fills what an older host does not have.
inline const driftd_host_table* host = nullptr;

/// A call in progress, as the provider sees it. Made by the SDK on the stack of the call; use it only on its thread and
/// not after the function returned. Whatever the host refuses is thrown as a Failure with the host's status, which a
/// provider lets pass: the SDK returns it unchanged.
class Call {
 public:
  explicit Call(driftd_call handle) : handle_(handle), started_ns_(host->now()) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Keys and values behind a log line; of more than 32 the host shows the first 32.
  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  /// Writes a line into the agent's log, `level` DRIFTD_LOG_*. The host cuts the text at 4 KiB, removes the secrets of
  /// the instance and drops lines beyond 20 a second (bursts of 100). Never throws because of the host.
  void log(std::int32_t level, std::string_view text, Fields fields = {}) const {
    std::vector<driftd_kv> kv;
    for (const auto& [key, value] : fields) kv.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
    host->log(handle_, level, str(text), kv.data(), static_cast<std::uint32_t>(kv.size()));
  }
  /// Returns true if the host wants the call to end: it was cancelled or its deadline passed. Ask between requests.
  bool cancelled() const { return host->cancelled(handle_) != 0; }
  std::int64_t deadline_ns() const { return host->deadline(handle_); }  ///< CLOCK_MONOTONIC
  /// Readable once the call is cancelled, for poll(2); the host owns it: neither read nor close it. -1: none.
  int cancel_fd() const { return host->cancel_fd(handle_); }
  std::int64_t now_ns() const { return host->now(); }      ///< wall clock, nanoseconds since the epoch
  std::int64_t started_ns() const { return started_ns_; }  ///< the same, when the call began

  /// Pushes one record, in refresh, read and watch only; the host copies it. May block until the agent took earlier
  /// ones. False: accepted, but return soon. Throws Failure: INVALID if the call takes no records or the kind is
  /// not declared, BUDGET if a refresh has more records or bytes than the backend may have, CANCELLED or DEADLINE if
  /// the call ended while it waited.
  bool emit(const Record& r) {
    std::vector<driftd_unread> unread;
    for (const auto& u : r.unread) unread.push_back({sizeof(driftd_unread), u.code, str(u.path), str(u.reason)});
    std::vector<driftd_kv> metadata;
    for (const auto& [key, value] : r.metadata) metadata.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
    std::vector<driftd_str> sensitive;
    for (const auto& path : r.sensitive) sensitive.push_back(str(path));
    driftd_record out{};
    out.size = sizeof out;
    out.schema_revision = r.schema_revision;
    out.kind = str(r.kind);
    out.id = str(r.id);
    out.backend = str(r.backend);
    out.body = str(r.body);
    out.status = str(r.status);
    out.version = str(r.version);
    out.external_name = str(r.external_name);
    out.origin = str(r.origin);
    out.unread = unread.data();
    out.unread_count = static_cast<std::uint32_t>(unread.size());
    out.unread_stride = sizeof(driftd_unread);
    out.metadata = metadata.data();
    out.metadata_count = static_cast<std::uint32_t>(metadata.size());
    out.metadata_stride = sizeof(driftd_kv);
    out.sensitive = sensitive.data();
    out.sensitive_count = sensitive.size();
    out.observed_ns = r.observed_ns != 0 ? r.observed_ns : started_ns_;
    out.tombstone = r.tombstone ? 1 : 0;
    const driftd_status status = host->emit(handle_, &out, 1, sizeof out);
    if (status == DRIFTD_OK || status == DRIFTD_FINISH_SOON) return status == DRIFTD_OK;
    throw Failure(status, "the host refused emit of " + r.kind + "/" + r.id.substr(0, 256));
  }
  /// Ends a page: a later refresh may resume behind it with `cursor` (at most 64 KiB, opaque to the host). Throws and
  /// returns as emit().
  bool checkpoint(std::string_view cursor) { return mark(DRIFTD_MARK_CHECKPOINT, {}, cursor, 0); }
  /// Declares that every resource of `kind` was emitted in this run, `count` of them; a source does so for each
  /// backend. Only then may the agent count a missing resource as deleted, so leave it out (and send a
  /// diagnostic) for a kind that was not listed whole. Refresh only. Throws INVALID if a record of this call was
  /// refused, BUDGET if the budget of the refresh is used up.
  bool complete(std::string_view kind, std::uint64_t count, std::string_view backend = {}) {
    return mark(DRIFTD_MARK_COMPLETE, kind, {}, count, backend);
  }
  /// Watch: nothing before `cursor` is outstanding. An empty cursor with no records before it means "refresh now".
  bool bookmark(std::string_view cursor) { return mark(DRIFTD_MARK_BOOKMARK, {}, cursor, 0); }

  /// Sends a diagnostic, which the host copies; the last one of a call that fails is its reason. Never throws because
  /// of the host.
  void diag(const Diagnostic& d) {
    const driftd_diagnostic out{sizeof out,  d.code,       str(d.kind),      str(d.id),     str(d.path),
                                str(d.text), str(d.right), d.retry_after_ms, str(d.backend)};
    host->diag(handle_, &out);
  }
  /// Sets a gauge that describe().metrics declares. Throws INVALID for another name or a value that is not
  /// finite; beyond 500 a second (bursts of 10,000) values are dropped.
  void metric(std::string_view name, double value) { accepted(host->metric(handle_, str(name), value), "metric"); }
  /// Waits for `tokens` of the agent's rate limiter `bucket`. Throws CANCELLED or DEADLINE if the call ends first.
  void permit(std::string_view bucket, std::uint32_t tokens = 1) {
    accepted(host->permit(handle_, str(bucket), tokens), "permit");
  }
  /// Returns a copy of the secret behind the token that a sensitive setting holds; empty for an empty token. Wipe
  /// it after use; never log it. Throws DENIED if the token was not issued for this instance.
  std::string secret(std::string_view token) {
    if (token.empty()) return {};
    struct Copy {
      std::string bytes;
      bool failed = false;
    } copy;
    const auto use = [](void* user, const std::uint8_t* data, std::uint64_t len) noexcept {
      auto& to = *static_cast<Copy*>(user);
      try {
        to.bytes.assign(reinterpret_cast<const char*>(data), static_cast<std::size_t>(len));
      } catch (...) {  // nothing is thrown through the host
        to.failed = true;
      }
    };
    accepted(host->secret(handle_, str(token), use, &copy), "secret");
    if (copy.failed) throw Failure(DRIFTD_INTERNAL, "no memory is left for a copy of a secret");
    return std::move(copy.bytes);
  }

 private:
  /// `type` is DRIFTD_MARK_*.
  bool mark(std::uint32_t type, std::string_view kind, std::string_view cursor, std::uint64_t count,
            std::string_view backend = {}) {
    const driftd_mark out{sizeof out, type, str(kind), str(cursor), count, str(backend)};
    return accepted(host->mark(handle_, &out), "mark");
  }
  /// Returns true for OK, false for FINISH_SOON; throws any other status.
  static bool accepted(driftd_status status, const char* what) {
    if (status == DRIFTD_OK) return true;
    if (status == DRIFTD_FINISH_SOON) return false;
    throw Failure(status, std::string("the host refused ") + what);
  }

  driftd_call handle_;
  std::int64_t started_ns_;
};

}  // namespace driftd::sdk
