// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace driftd::test {
namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" `");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" `") - begin + 1);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(trimmed(part));
  return out;
}

/// Further faulty providers that the table does not list, with the check that finds each.
const std::map<std::string, std::string>& unlisted_providers() {
  static const std::map<std::string, std::string> kUnlisted = {
      {"forges_verdict", "binary.loads"},
      {"daemonizes", "refresh.works"},
      {"writes_past_accept", "negotiation.no_overwrite"},
      {"tires", "memory.refresh_flat"},
      {"leaks_calls_descriptors", "memory.refresh_flat"},
      {"changes_handlers", "threads.process_state"},
      {"changes_folder", "threads.process_state"},
      {"slow_drip", "deadline.cancel_before"},
      {"describe_crashes", "schema.describe"},
      {"null_text", "schema.text"},
      {"null_log", "schema.text"},
      {"huge_text", "schema.text"},
      {"unknown_status", "schema.statuses"},
      {"nan_metric", "schema.metrics"},
  };
  return kUnlisted;
}

}  // namespace

std::vector<DocumentedCheck> documented_checks(const std::string& name) {
  std::ifstream page(DRIFTD_SOURCE_DIR "/docs/" + name);
  std::vector<DocumentedCheck> out;
  for (std::string line; std::getline(page, line);) {
    const auto cells = split(line, '|');
    const bool is_row = cells.size() >= 5 && cells[1].find('.') != std::string::npos;
    if (is_row && (cells[2] == "must" || cells[2] == "should"))
      out.push_back({cells[1], cells[2], split(cells[4], ',')});
  }
  if (out.empty()) throw std::runtime_error("docs/" + name + " has no table of checks");
  return out;
}

std::vector<FaultyProvider> providers() {
  std::map<std::string, std::string> levels;
  std::map<std::string, FaultyProvider> out;
  for (const auto& row : documented_checks()) {
    levels[row.id] = row.level;
    for (const auto& name : row.providers) {
      out[name].name = name;
      out[name].breaks[row.id] = row.level;
    }
  }
  for (const auto& [name, id] : unlisted_providers()) out[name] = {name, {{id, levels.at(id)}}};
  std::vector<FaultyProvider> list;
  for (const auto& [name, provider] : out) list.push_back(provider);
  return list;
}

std::vector<FaultyProvider> sinks() {
  std::map<std::string, FaultyProvider> named;
  for (const auto& row : documented_checks("driftd-check-sinks.md")) {
    for (const auto& name : row.providers) {
      named[name].name = name;
      named[name].breaks[row.id] = row.level;
    }
  }
  std::vector<FaultyProvider> out;
  for (const auto& [name, sink] : named) out.push_back(sink);
  return out;
}

const std::vector<std::string>& without_findings() {
  static const std::vector<std::string> kWithoutFindings = {
      "sound",   "sound_extended", "broken_pipe",  "twin",        "leaks", "shouts",
      "garbage", "fork_bomb",      "secret_blind", "never_still", "heavy"};
  return kWithoutFindings;
}

}  // namespace driftd::test
