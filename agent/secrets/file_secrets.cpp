// SPDX-License-Identifier: Apache-2.0
#include "secrets/file_secrets.hpp"

#include <algorithm>
#include <utility>

namespace driftd::secrets {
namespace {

Error not_regular_error(const std::filesystem::path& file) {
  return Error{Code::invalid, "secret file " + file.string() + " is not a regular file any more"};
}

}  // namespace

bool must_read(const std::optional<config::FileMark>& was, const std::optional<config::FileMark>& now, bool refused) {
  return refused || !was || !now || *was != *now;
}

FileSecrets::FileSecrets(std::vector<config::FileUse> uses, const std::map<std::string, std::string>& in_use) {
  for (auto& use : uses) {
    const auto text = in_use.find(use.token);
    all_.push_back({std::move(use),
                    text == in_use.end() ? std::string() : text->second,
                    std::nullopt,
                    {},
                    {},
                    std::nullopt,
                    false});
  }
}

std::vector<FileSecrets::FileToRead> FileSecrets::files_to_read() const {
  std::vector<FileToRead> out;
  for (const auto& one : all_) out.push_back({one.use.file, one.unsettled ? std::nullopt : one.mark});
  return out;
}

std::vector<FileSecrets::Found> FileSecrets::look(const std::vector<FileToRead>& files_to_read, bool refused) {
  std::vector<Found> out;
  for (const auto& one : files_to_read) {
    Found found{config::mark_of(one.file), {}, {}};
    if (found.mark && !found.mark->regular) {
      found.read = tl::unexpected(not_regular_error(one.file));
    } else if (must_read(one.was, found.mark, refused)) {
      found.read = config::reread_secret_file(one.file);
    }
    found.at = std::chrono::steady_clock::now();
    out.push_back(std::move(found));
  }
  return out;
}

/// Returns true if an earlier look saw the same content. Compares the marks alone, because a file system may have
/// another clock than we.
bool FileSecrets::settles(One& one, const Found& found) {
  const bool switched = *found.read && (*found.read)->mark != found.mark;
  const bool other = !one.sight || one.sight->mark != found.mark;
  if (other) {
    const auto unsettled_since = one.sight && !one.sight->settled ? one.sight->unsettled_since : found.at;
    one.sight = Sight{found.mark, found.at, unsettled_since};
  }
  one.sight->settled = !other && !switched && found.at - one.sight->first >= config::kSettleTime;
  return one.sight->settled;
}

void FileSecrets::set_fault(One& one, const std::string& why, FileChanges& out) {
  const std::string setting = "setting " + one.use.setting + ": ";
  const std::string fault = why.empty() ? why : setting + why + "; what was read before stays in use";
  const std::string before = std::exchange(one.fault, fault);
  if (!fault.empty() && fault != before) out.failing.push_back(fault);
  if (fault.empty() && !before.empty())
    out.recovered.push_back(setting + "secret file " + one.use.file.string() + " can be read again");
}

/// Keeps the mark of a settled reading. Does not report at the first look that others may replace the file: the load
/// of the config has reported it.
void FileSecrets::keep_mark(One& one, const config::SecretText& read, FileChanges& out) {
  const bool news = one.mark && read.rights.replaced != one.replaced && !read.rights.replaced.empty();
  one.mark = read.mark;
  one.replaced = read.rights.replaced;
  if (news)
    out.doubtful.push_back("setting " + one.use.setting + ": " +
                           config::replaceable_warning(one.use.file, read.rights));
}

void FileSecrets::apply_one(One& one, Found found, FileChanges& out) {
  one.unsettled = false;
  if (!found.read) {
    one.sight.reset();
    return set_fault(one, {}, out);
  }
  const auto& read = *found.read;
  const bool settled = settles(one, found), same = read && read->text == one.text;
  if (settled && read) keep_mark(one, *read, out);
  if (same) return set_fault(one, {}, out);
  if (!settled) {
    const bool for_long = found.at - one.sight->unsettled_since >= config::kMaxSettleTime;
    one.unsettled = !for_long;
    return for_long ? set_fault(one, config::unsettled_error(one.use.file).message, out) : void();
  }
  set_fault(one, read ? std::string() : read.error().message, out);
  if (!read) return;
  one.text = read->text;
  out.values[one.use.token] = one.text;
  out.changed.push_back("setting " + one.use.setting + " (" + one.use.file.string() + ")");
}

FileSecrets::FileChanges FileSecrets::apply(std::vector<Found> found) {
  FileChanges out;
  for (std::size_t i = 0; i < all_.size() && i < found.size(); ++i) apply_one(all_[i], std::move(found[i]), out);
  return out;
}

bool FileSecrets::unsettled() const {
  return std::any_of(all_.begin(), all_.end(), [](const One& one) { return one.unsettled; });
}

std::string FileSecrets::fault() const {
  for (const auto& one : all_) {
    if (!one.fault.empty()) return one.fault;
  }
  return {};
}

}  // namespace driftd::secrets
