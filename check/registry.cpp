// SPDX-License-Identifier: Apache-2.0
#include "check/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ipc/settings_schema.hpp"

namespace driftd::check {
namespace {

bool names(const std::string& word, const Check& check) {
  const std::string group = group_of(check);
  return word == check.id || word == group || word == group + ".*";
}

Error unknown(const std::string& word, const std::vector<Check>& all) {
  std::vector<std::string> known;
  for (const auto& check : all) {
    known.emplace_back(check.id);
    const std::string group = group_of(check);
    if (std::find(known.begin(), known.end(), group) == known.end()) known.push_back(group);
  }
  const std::string nearest = ipc::nearest_name(word, known);
  return {Code::invalid,
          fmt::format("--only {}: no check and no group has this name; {}", word,
                      nearest.empty() ? "`driftd-check --list` shows all" : fmt::format("did you mean `{}`?", nearest)),
          0};
}

}  // namespace

std::vector<Check> all_checks(PluginKind kind) {
  std::vector<Check> out;
  if (kind == PluginKind::sink) {
    out.assign(binary_checks().begin(), binary_checks().end());
    const auto further = sink_checks();
    out.insert(out.end(), further.begin(), further.end());
    return out;
  }
  for (const auto group : {binary_checks(), negotiation_checks(), memory_checks(), threads_checks(), deadline_checks(),
                           refresh_checks(), schema_checks(), secrets_checks(), chaos_checks()}) {
    out.insert(out.end(), group.begin(), group.end());
  }
  return out;
}

Result<std::vector<Check>> select_checks(const std::vector<Check>& all, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return all;
  std::vector<Check> out;
  for (const auto& word : wanted) {
    if (std::none_of(all.begin(), all.end(), [&](const Check& c) { return names(word, c); })) {
      return fail(unknown(word, all));
    }
  }
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](const Check& check) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& word) { return names(word, check); });
  });
  return out;
}

std::string group_of(const Check& check) {
  const std::string id = check.id;
  return id.substr(0, id.find('.'));
}

const char* render(Level level) { return level == Level::must ? "must" : "should"; }

}  // namespace driftd::check
