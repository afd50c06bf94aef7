// SPDX-License-Identifier: Apache-2.0
#include "store/slow_layer.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "base/slow_hash.hpp"

namespace driftd::store {
namespace {

constexpr std::size_t kMostThreads = 4;  // each needs 16 MiB
constexpr std::size_t kAtOnce = 4'096;   // digests in memory at once, far fewer than the process caches
constexpr std::size_t kHex = 64;

/// 60 bits of a digest: as good as all of it to count distinct ones.
std::uint64_t part_of(const std::string& digest) {
  std::uint64_t out = 0;
  const char* hex = digest.data() + digest.size() - kHex;
  std::from_chars(hex, hex + 15, out, 16);
  return out;
}

}  // namespace

SlowLayer::SlowLayer(Connection& db, const core::RedactionKeys& keys) : db_(db), keys_(keys) {
  const auto& layers = keys_.store.layers;
  std::size_t last = layers.size();  // index after the last slow layer
  while (last > 0 && layers[last - 1].kind != core::LayerKind::slow) --last;
  if (last > 0) lacking_.push_back(keys_.store.id + keys_.worker.id);
  for (std::size_t i = 0; i + 1 < last; ++i) lacking_.push_back(layers[i].id + keys_.worker.id);
  threads_ = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
}

void SlowLayer::collect(std::string_view text, std::set<std::string>& out) const {
  for (const auto& id : lacking_) {
    for (std::size_t at = text.find(id); at != std::string_view::npos; at = text.find(id, at + 1)) {
      const std::size_t colon = text.find(':', at + id.size() + 1);
      if (colon == std::string_view::npos || colon + 1 + kHex > text.size()) break;
      const std::string token(text.substr(at, colon + 1 + kHex - at));
      if (core::as_digest(core::Value(core::Value::Object{{"$hmac", core::Value(token)}}))) out.insert(token);
    }
  }
}

Result<SlowWork> SlowLayer::work() const {
  SlowWork out{0, {}, threads_};
  if (lacking_.empty()) return out;
  std::unordered_set<std::uint64_t> distinct;
  auto query = db_.statement(
      "SELECT baseline FROM resource WHERE instr(baseline, '$hmac') UNION ALL SELECT observed FROM resource WHERE "
      "instr(observed, '$hmac') "
      "UNION ALL SELECT changes FROM drift WHERE instr(changes, '$hmac') UNION ALL SELECT body FROM declaration WHERE "
      "instr(body, '$hmac')");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) break;
    std::set<std::string> digests;
    collect(query.text(0), digests);
    for (const auto& one : digests) distinct.insert(part_of(one));
  }
  const auto began = std::chrono::steady_clock::now();
  DRIFTD_CHECK(slow_hash("how long one takes", "here and now"));
  const auto one = std::chrono::steady_clock::now() - began;
  out.digests = distinct.size();
  out.time = std::chrono::duration_cast<std::chrono::milliseconds>(one * (out.digests / threads_ + 1));
  return out;
}

Status SlowLayer::make(std::string_view sql, std::int64_t first, std::int64_t last) const {
  if (lacking_.empty()) return {};
  std::set<std::string> digests;
  auto query = db_.statement(sql);
  query.bind(first, last);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (more) collect(query.text(0), digests);
    if (more && digests.size() < kAtOnce) continue;
    DRIFTD_CHECK(make(digests));
    digests.clear();
    if (!more) return {};
  }
}

Status SlowLayer::make(const std::set<std::string>& digests) const {
  const std::vector<std::string> todo(digests.begin(), digests.end());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < todo.size(); i = next++) {
      core::Value value(core::Value::Object{{"$hmac", core::Value(todo[i])}});
      const auto made = core::rewrap(value, keys_);
      if (made) continue;
      const std::lock_guard lock(mutex);
      failed = fail(made.error());
      next = todo.size();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads_, todo.size()); ++i) others.emplace_back(work);
  work();
  for (auto& thread : others) thread.join();
  return failed;
}

}  // namespace driftd::store
