// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace driftd::consumer {
namespace {

using nlohmann::json;

/// A key that was forgotten makes at worst an old event apply again, which loads the current state again.
constexpr std::size_t kMaxKeys = 65'536;
constexpr std::uintmax_t kMaxFile = 64 << 20;
constexpr int kVersion = 1;

json order_json(const EventOrder& order) { return json::array({order.incarnation, order.sequence}); }
EventOrder order_in(const json& value) { return {value.at(0).get<std::uint64_t>(), value.at(1).get<std::uint64_t>()}; }

json memory_json(const BackendMemory& memory) {
  return {{"endpoint_from", memory.endpoint_from},
          {"endpoint", memory.endpoint},
          {"endpoint_order", order_json(memory.endpoint_order)},
          {"health", memory.health},
          {"health_order", order_json(memory.health_order)},
          {"endpoint_fresh", memory.endpoint_fresh},
          {"stream_created_ns", memory.stream_created_ns},
          {"stream_sequence", memory.stream_sequence}};
}

BackendMemory memory_in(const json& value) {
  BackendMemory out;
  out.endpoint_from = value.at("endpoint_from");
  out.endpoint = value.at("endpoint");
  out.endpoint_order = order_in(value.at("endpoint_order"));
  out.health = value.at("health");
  out.health_order = order_in(value.at("health_order"));
  out.endpoint_fresh = value.at("endpoint_fresh");
  out.stream_created_ns = value.at("stream_created_ns");
  out.stream_sequence = value.at("stream_sequence");
  return out;
}

/// Replaces a file so that after a power loss it is the former or the new one.
Status replace_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const auto failed = [&](const char* doing) {
    return fail(Code::unavailable, "checkpoint " + path + ": " + doing + ": " + std::strerror(errno));
  };
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed("cannot be written");
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const auto out = failed("cannot be written");
      ::close(fd);
      return out;
    }
    done += static_cast<std::size_t>(wrote);
  }
  const bool synced = ::fsync(fd) == 0;
  if (::close(fd) != 0 || !synced) return failed("cannot be synced");
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed("cannot be replaced");
  const auto folder = std::filesystem::path(path).parent_path();
  const int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return failed("its folder cannot be opened");
  const bool kept = ::fsync(dir) == 0;
  ::close(dir);
  if (!kept) return failed("its folder cannot be synced");
  return {};
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& path, const std::string& owner,
                                                     std::string& note) {
  if (path.empty()) return std::unique_ptr<Checkpoint>(new Checkpoint(path, owner, -1));
  const std::string lock_path = path + ".lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return fail(Code::invalid, "checkpoint " + lock_path + ": " + std::strerror(errno));
  std::unique_ptr<Checkpoint> out(new Checkpoint(path, owner, lock));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::invalid,
                "checkpoint " + path + " is used by another process; each instance needs a file of its own");
  }
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) return out;
  if (error) return fail(Code::invalid, "checkpoint " + path + ": " + error.message());
  std::string text;
  if (size <= kMaxFile) {
    std::ifstream file(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  try {
    const json whole = json::parse(text);
    if (whole.at("version") != kVersion) return fail(Code::invalid, "checkpoint " + path + " is of another version");
    if (whole.at("owner") != owner) {
      return fail(Code::invalid, "checkpoint " + path + " belongs to " + whole["owner"].dump() + ", not to \"" + owner +
                                     "\"; give each pattern and instance its own");
    }
    for (const auto& [name, memory] : whole.at("backends").items()) out->backends_[name] = memory_in(memory);
    for (const auto& entry : whole.at("applied")) {
      out->recent_.emplace_back(entry.at(0), EventOrder{entry.at(1), entry.at(2)});
      out->by_key_[out->recent_.back().first] = std::prev(out->recent_.end());
    }
    return out;
  } catch (const json::exception&) {
    if (::rename(path.c_str(), (path + ".damaged").c_str()) != 0) {
      return fail(Code::invalid, "checkpoint " + path + " is damaged and cannot be put aside: " + std::strerror(errno));
    }
    out->recent_.clear();
    out->by_key_.clear();
    out->backends_.clear();
    note = "checkpoint " + path + " was damaged; it is kept as " + path +
           ".damaged. Events of the last minutes may be "
           "handled again, and an endpoint that an event announced is forgotten";
    return out;
  }
}

Checkpoint::~Checkpoint() {
  if (lock_ >= 0) ::close(lock_);
}

Checkpoint::Verdict Checkpoint::judge(const BackendEvent& event) const {
  if (event.order == EventOrder{}) return Verdict::fresh;  // without an order there is nothing to compare
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(event.backend + "\n" + event.key);
  if (found == by_key_.end() || event.order > found->second->second) return Verdict::fresh;
  return event.order == found->second->second ? Verdict::duplicate : Verdict::old;
}

void Checkpoint::applied(const BackendEvent& event) {
  if (event.order == EventOrder{}) return;
  const std::lock_guard lock(mutex_);
  dirty_ = true;
  const std::string key = event.backend + "\n" + event.key;
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) {
    found->second->second = std::max(found->second->second, event.order);
    recent_.splice(recent_.begin(), recent_, found->second);
    return;
  }
  recent_.emplace_front(key, event.order);
  by_key_[key] = recent_.begin();
  if (recent_.size() <= kMaxKeys) return;
  by_key_.erase(recent_.back().first);
  recent_.pop_back();
}

BackendMemory Checkpoint::memory(const std::string& backend) const {
  const std::lock_guard lock(mutex_);
  const auto found = backends_.find(backend);
  return found == backends_.end() ? BackendMemory{} : found->second;
}

std::string Checkpoint::text() const {
  json backends = json::object(), applied = json::array();
  for (const auto& [name, memory] : backends_) backends[name] = memory_json(memory);
  for (const auto& [key, order] : recent_) applied.push_back(json::array({key, order.incarnation, order.sequence}));
  return json{{"version", kVersion},
              {"owner", owner_},
              {"backends", std::move(backends)},
              {"applied", std::move(applied)}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

Status Checkpoint::save() {
  if (path_.empty()) return {};
  const std::lock_guard saving(saving_);
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!dirty_) return {};
    text = this->text();
    dirty_ = false;
  }
  auto done = replace_file(path_, text);
  if (done) return done;
  const std::lock_guard lock(mutex_);
  dirty_ = true;
  return done;
}

}  // namespace driftd::consumer
