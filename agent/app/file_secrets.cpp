// SPDX-License-Identifier: Apache-2.0
#include "app/file_secrets.hpp"

#include <utility>

namespace driftd::app {
namespace {

Error no_regular_file(const std::filesystem::path& file) {
  return Error{Code::invalid, "secret file " + file.string() + " is not a regular file any more"};
}

}  // namespace

bool must_read(const std::optional<config::FileMark>& was, const std::optional<config::FileMark>& now, bool refused) {
  return refused || !was || !now || *was != *now;
}

FileSecrets::FileSecrets(std::vector<config::FileUse> uses, const std::map<std::string, std::string>& in_use) {
  for (auto& use : uses) {
    const auto text = in_use.find(use.token);
    all_.push_back({std::move(use), text == in_use.end() ? std::string() : text->second, std::nullopt, {}});
  }
}

std::vector<FileSecrets::Asked> FileSecrets::asked() const {
  std::vector<Asked> out;
  for (const auto& one : all_) out.push_back({one.use.file, one.mark});
  return out;
}

std::vector<FileSecrets::Found> FileSecrets::look(const std::vector<Asked>& asked, bool refused) {
  std::vector<Found> out;
  for (const auto& one : asked) {
    const auto now = config::mark_of(one.file);
    Found found;
    if (now && !now->regular) {
      found = tl::unexpected(no_regular_file(one.file));
    } else if (must_read(one.was, now, refused)) {
      found = config::read_secret_file_again(one.file);
    }
    out.push_back(std::move(found));
  }
  return out;
}

void FileSecrets::take_text(One& one, config::SecretText read, News& out) {
  one.mark = read.mark;
  if (read.text == one.text) return;
  one.text = std::move(read.text);
  out.values[one.use.token] = one.text;
  out.changed.push_back("setting " + one.use.setting + " (" + one.use.file.string() + ")");
}

FileSecrets::News FileSecrets::take(std::vector<Found> found) {
  News out;
  for (std::size_t i = 0; i < all_.size() && i < found.size(); ++i) {
    One& one = all_[i];
    const std::string setting = "setting " + one.use.setting + ": ";
    const bool failed = found[i] && !*found[i];
    const std::string fault = failed ? setting + found[i]->error().message + "; what was read before stays in use" : std::string();
    const std::string before = std::exchange(one.fault, fault);
    if (failed && fault != before) out.failing.push_back(fault);
    if (!failed && !before.empty()) out.mended.push_back(setting + "secret file " + one.use.file.string() + " can be read again");
    if (found[i] && !failed) take_text(one, std::move(**found[i]), out);
  }
  return out;
}

std::string FileSecrets::fault() const {
  for (const auto& one : all_) {
    if (!one.fault.empty()) return one.fault;
  }
  return {};
}

}  // namespace driftd::app
