// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <utility>

#include "driftd/sdk/types.hpp"

namespace driftd::sdk {

/// The host's table as handed to driftd_provider_v1. Set once before any call.
inline const driftd_host_table* host = nullptr;

/// A call in progress, as the provider sees it. Lives on the stack of the call; use it only on its thread.
class Call {
 public:
  explicit Call(driftd_call handle) : handle_(handle), started_ns_(host->now()) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  void log(std::int32_t level, std::string_view text, Fields fields = {}) const {
    std::vector<driftd_kv> kv;
    for (const auto& [key, value] : fields) kv.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
    host->log(handle_, level, str(text), kv.data(), static_cast<std::uint32_t>(kv.size()));
  }
  bool cancelled() const { return host->cancelled(handle_) != 0; }
  std::int64_t deadline_ns() const { return host->deadline(handle_); }  ///< CLOCK_MONOTONIC
  int cancel_fd() const { return host->cancel_fd(handle_); }
  std::int64_t now_ns() const { return host->now(); }
  std::int64_t started_ns() const { return started_ns_; }

  /// Pushes one record. False: accepted, but return soon. A refusal of the host throws Failure.
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
    return accepted(host->emit(handle_, &out, 1, sizeof out), "emit");
  }
  bool checkpoint(std::string_view cursor) { return mark(DRIFTD_MARK_CHECKPOINT, {}, cursor, 0); }
  /// Every resource of `kind` was emitted in this run, `count` of them; a source says so for each backend.
  bool complete(std::string_view kind, std::uint64_t count, std::string_view backend = {}) {
    return mark(DRIFTD_MARK_COMPLETE, kind, {}, count, backend);
  }
  bool bookmark(std::string_view cursor) { return mark(DRIFTD_MARK_BOOKMARK, {}, cursor, 0); }

  void diag(const Diagnostic& d) {
    const driftd_diagnostic out{sizeof out,  d.code,       str(d.kind),      str(d.id),      str(d.path),
                                str(d.text), str(d.right), d.retry_after_ms, str(d.backend)};
    host->diag(handle_, &out);
  }
  /// A gauge that describe().metrics declares.
  void metric(std::string_view name, double value) { accepted(host->metric(handle_, str(name), value), "metric"); }
  /// Waits for the host's rate limiter; throws Failure when cancelled or late.
  void permit(std::string_view bucket, std::uint32_t tokens = 1) {
    accepted(host->permit(handle_, str(bucket), tokens), "permit");
  }
  /// A copy of the secret behind a token. Wipe it after use; never log it.
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
  bool mark(std::uint32_t type, std::string_view kind, std::string_view cursor, std::uint64_t count,
            std::string_view backend = {}) {
    const driftd_mark out{sizeof out, type, str(kind), str(cursor), count, str(backend)};
    return accepted(host->mark(handle_, &out), "mark");
  }
  static bool accepted(driftd_status status, const char* what) {
    if (status == DRIFTD_OK) return true;
    if (status == DRIFTD_FINISH_SOON) return false;
    throw Failure(status, std::string("the host refused ") + what);
  }

  driftd_call handle_;
  std::int64_t started_ns_;
};

}  // namespace driftd::sdk
