// SPDX-License-Identifier: Apache-2.0
#include "check/stage.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace driftd::check {
namespace {

char own_page[512];
char* page = own_page;
std::size_t page_size = sizeof own_page;
std::mutex& mutex() {
  static auto* it = new std::mutex;  // stuck threads may still write while the process ends
  return *it;
}

std::string& note() {
  static auto* it = new std::string;
  return *it;
}

}  // namespace

void share_stage(char* shared, std::size_t size) {
  page = shared;
  page_size = size;
}

void stage(std::string_view what) {
  const std::lock_guard lock(mutex());
  const std::string text = std::string(what) + note();
  const std::size_t n = std::min(text.size(), page_size - 1);
  std::memcpy(page, text.data(), n);
  page[n] = '\0';
}

void stage_note(std::string_view text) {
  const std::lock_guard lock(mutex());
  note() = text.empty() ? std::string() : "; " + std::string(text);
}

std::string current_stage() {
  const std::lock_guard lock(mutex());
  return page;
}

}  // namespace driftd::check
