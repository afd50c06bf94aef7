// SPDX-License-Identifier: Apache-2.0
#include "check/progress.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace driftd::check {
namespace {

ProgressPage own_page;
ProgressPage* page = &own_page;
std::mutex& mutex() {
  static auto* it = new std::mutex;  // never destroyed: stuck threads may still write while the process ends
  return *it;
}

std::string& note() {
  static auto* it = new std::string;
  return *it;
}

}  // namespace

void share_progress(ProgressPage* shared) { page = shared; }

void set_busy_until(std::int64_t ns) { page->busy_until_ns = ns; }

void set_progress(std::string_view what) {
  const std::lock_guard lock(mutex());
  const std::string text = std::string(what) + note();
  const std::size_t n = std::min(text.size(), sizeof page->text - 1);
  std::memcpy(page->text, text.data(), n);
  page->text[n] = '\0';
}

void set_progress_note(std::string_view text) {
  const std::lock_guard lock(mutex());
  note() = text.empty() ? std::string() : "; " + std::string(text);
}

std::string progress_text() {
  const std::lock_guard lock(mutex());
  return page->text;
}

}  // namespace driftd::check
