// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/disk.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace driftd::sim {
namespace {

constexpr std::int64_t kSector = 512;
constexpr double kTorn = 0.05;

std::vector<Disk*>& disks() {
  static std::vector<Disk*> all;
  return all;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_database(const std::string& name) { return name.starts_with("store.db"); }
bool is_shared_memory(const std::string& name) { return name.ends_with("-shm"); }

}  // namespace

Disk::Disk(std::string folder, std::uint64_t seed) : folder_(std::move(folder)), random_(seed) {
  register_vfs();
  disks().push_back(this);
}

Disk::~Disk() { std::erase(disks(), this); }

Disk* Disk::of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  for (auto* disk : disks()) {
    if (disk->folder_ == folder || disk->folder_ == path) return disk;
  }
  return nullptr;
}

bool Disk::sync_plain(const std::string& path) {
  Disk* const disk = of(path);
  if (disk == nullptr) return true;
  if (disk->dead_ || disk->chance(disk->faults.sync_fails)) return false;
  disk->latency_ += disk->faults.sync_takes;
  if (disk->folder_ == path) {
    disk->sync_folder();
    return true;
  }
  const std::string name = std::filesystem::path(path).filename();
  if (is_database(name)) return disk->sync(name, false) == Answer::done;
  ++disk->durable_changes_;
  File& file = disk->files_[name];
  file.exists = true;
  file.synced = read_file(path);
  return true;
}

std::optional<std::int64_t> Disk::read_plain(const std::string& path, char* to, std::int64_t size, std::int64_t at) {
  Disk* const disk = of(path);
  const std::string name = std::filesystem::path(path).filename();
  if (disk == nullptr || !is_database(name)) return std::nullopt;
  return disk->read(name, to, size, at);
}

bool Disk::write_plain(const std::string& path, const char* from, std::int64_t size, std::int64_t at) {
  Disk* const disk = of(path);
  const std::string name = std::filesystem::path(path).filename();
  if (disk == nullptr || !is_database(name)) return false;
  disk->put(name, from, size, at);
  return true;
}

bool Disk::chance(double of) { return of > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < of; }

Disk::Answer Disk::before_read() { return dead_ || chance(faults.read_fails) ? Answer::io_error : Answer::done; }

Disk::Answer Disk::begin_change() {
  if (dead_) return Answer::io_error;
  ++changes_;
  if (before_change) before_change();
  return Answer::done;
}

std::int64_t Disk::read(const std::string& name, char* to, std::int64_t size, std::int64_t at) {
  const std::string& live = files_[name].live;
  if (at >= static_cast<std::int64_t>(live.size())) return 0;
  return static_cast<std::int64_t>(live.copy(to, static_cast<std::size_t>(size), static_cast<std::size_t>(at)));
}

Disk::Answer Disk::write(const std::string& name, const char* from, std::int64_t size, std::int64_t at) {
  if (begin_change() != Answer::done || chance(faults.write_fails)) return Answer::io_error;
  if (faults.full && at + size > size_of(name)) return Answer::full;
  put(name, from, size, at);
  return Answer::done;
}

void Disk::put(const std::string& name, const char* from, std::int64_t size, std::int64_t at) {
  File& file = files_[name];
  if (!std::exchange(file.exists, true)) ++durable_changes_;
  const auto end = static_cast<std::size_t>(at + size);
  if (file.live.size() < end) file.live.resize(end);
  file.live.replace(static_cast<std::size_t>(at), static_cast<std::size_t>(size), from, static_cast<std::size_t>(size));
  if (loses_power) file.changes.push_back({at, std::string(from, static_cast<std::size_t>(size))});
}

Disk::Answer Disk::truncate(const std::string& name, std::int64_t size) {
  if (begin_change() != Answer::done) return Answer::io_error;
  File& file = files_[name];
  file.live.resize(static_cast<std::size_t>(size));
  if (loses_power) file.changes.push_back({size, std::nullopt});
  return Answer::done;
}

std::int64_t Disk::size_of(const std::string& name) const {
  const auto found = files_.find(name);
  return found == files_.end() ? 0 : static_cast<std::int64_t>(found->second.live.size());
}

void Disk::closed(const std::string& name) {
  std::error_code gone;  // it was removed
  std::filesystem::resize_file(std::filesystem::path(folder_) / name, static_cast<std::uintmax_t>(size_of(name)), gone);
}

/// A sync that fails leaves the pages in the cache, marked as clean: no later sync writes them (fsyncgate).
Disk::Answer Disk::sync(const std::string& name, bool new_name) {
  if (begin_change() != Answer::done) return Answer::io_error;
  ++syncs_;
  latency_ += faults.sync_takes;
  File& file = files_[name];
  if (chance(faults.sync_fails)) {
    file.changes.clear();
    return Answer::io_error;
  }
  ++durable_changes_;
  for (const auto& change : file.changes) apply(file.synced, change, Survival::everything, 1);
  file.changes.clear();
  if (new_name) sync_folder();
  return Answer::done;
}

Disk::Answer Disk::before_remove() { return begin_change(); }

void Disk::created(const std::string& name) {
  File& file = files_[name];
  if (file.exists) return;
  ++durable_changes_;
  file.exists = true;
  file.name_synced = false;
  file.live.clear();
  file.synced.clear();
  file.changes.clear();
}

void Disk::removed(const std::string& name, bool folder_synced) {
  ++durable_changes_;
  File& file = files_[name];
  if (file.name_synced) file.former = std::move(file.synced);
  file.exists = file.name_synced = false;
  file.live.clear();
  file.synced.clear();
  file.changes.clear();
  if (folder_synced) sync_folder();
}

void Disk::look_at_plain_files() {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!is_shared_memory(entry.path().filename())) files_[entry.path().filename()].exists = true;
  }
}

void Disk::sync_folder() {
  ++durable_changes_;
  look_at_plain_files();
  for (auto& [name, file] : files_) {
    file.former.reset();
    file.name_synced = file.exists;
  }
}

void Disk::apply(std::string& content, const Change& change, Survival survival, double keep) {
  if (survival == Survival::nothing) return;
  const bool all = survival == Survival::everything;
  if (!change.bytes) {
    if (all || chance(keep)) content.resize(static_cast<std::size_t>(change.offset));
    return;
  }
  const auto end = change.offset + static_cast<std::int64_t>(change.bytes->size());
  if (all) {
    if (content.size() < static_cast<std::size_t>(end)) content.resize(static_cast<std::size_t>(end));
    change.bytes->copy(content.data() + change.offset, change.bytes->size());
    return;
  }
  for (std::int64_t at = change.offset; at < end;) {
    std::int64_t to = std::min(end, (at / kSector + 1) * kSector);
    const std::int64_t next = to;
    if (chance(keep)) {
      if (chance(kTorn)) to = at + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(to - at));
      if (content.size() < static_cast<std::size_t>(to)) content.resize(static_cast<std::size_t>(to));
      change.bytes->copy(content.data() + at, static_cast<std::size_t>(to - at),
                         static_cast<std::size_t>(at - change.offset));
    }
    at = next;
  }
}

std::string Disk::survivors(const File& file, Survival survival) {
  std::string content = file.synced;
  const double keep = std::uniform_real_distribution<double>(0, 1)(random_);
  for (const auto& change : file.changes) apply(content, change, survival, keep);
  return content;
}

std::map<std::string, std::string> Disk::after_power_loss(Survival survival) {
  look_at_plain_files();
  std::map<std::string, std::string> out;
  for (auto& [name, file] : files_) {
    const bool kept = survival == Survival::everything || (survival == Survival::some && chance(0.5));
    if (file.exists != file.name_synced && !kept) {  // the last change of the name is lost
      if (file.former) out[name] = *file.former;
    } else if (file.exists && is_database(name)) {
      out[name] = survivors(file, survival);
    } else if (file.exists) {  // one sector: the old line or the new one
      const bool live = survival == Survival::everything || (survival == Survival::some && chance(0.5));
      out[name] = live ? read_file(std::filesystem::path(folder_) / name) : file.synced;
    }
  }
  return out;
}

void Disk::lose_power() {
  static constexpr Survival kAll[] = {Survival::nothing, Survival::everything, Survival::some, Survival::some};
  const auto left = after_power_loss(kAll[random_() % 4]);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (left.count(entry.path().filename()) == 0) std::filesystem::remove(entry.path());
  }
  files_.clear();
  install(left);
}

void Disk::install(const std::map<std::string, std::string>& files) {
  ++durable_changes_;
  for (const auto& [name, content] : files) {
    const auto path = std::filesystem::path(folder_) / name;
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!is_database(name)) out << content;
    out.close();
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    File& file = files_[name];
    file.exists = file.name_synced = true;
    if (loses_power) file.synced = content;
    if (!is_database(name)) continue;
    file.live = content;
    closed(name);
  }
}

}  // namespace driftd::sim
