// SPDX-License-Identifier: Apache-2.0
// Which resources the settings of a backend include. Pure; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::sdk {

/// Returns true if the whole text fits. `*` is any run of characters, `/` included, all else is literal. Goes back to
/// the last `*` only, so it takes at most |glob| * |text| steps, whatever the operator wrote.
inline bool glob_match(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g, ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

/// The settings `include` and `exclude`, which every provider shares: globs over `kind/id`, or a kind alone; no
/// include: everything. The agent applies them too, so a provider that ignores them is only slower. read() also
/// answers for resources out of scope.
/// `include: [role, "database/prod*"]` with `exclude: ["role/tmp_*"]` is all roles but some, and some databases.
struct Scope {
  std::vector<std::string> include, exclude;  ///< globs as the settings have them

  /// Returns true if the resource is in scope. An exclude wins over an include.
  bool wants(std::string_view kind, std::string_view id) const {
    const std::string whole = std::string(kind) + "/" + std::string(id);
    const auto covers = [&](const std::string& glob) { return glob == kind || glob_match(glob, whole); };
    if (std::any_of(exclude.begin(), exclude.end(), covers)) return false;
    return include.empty() || std::any_of(include.begin(), include.end(), covers);
  }
  /// Returns false if nothing of this kind can be in scope: it need not be listed at all. True if in doubt, so each
  /// resource is still asked about with wants().
  bool wants_kind(std::string_view kind) const {
    const auto all_of_it = [&](const std::string& glob) { return glob == kind || glob == std::string(kind) + "/*"; };
    if (std::any_of(exclude.begin(), exclude.end(), all_of_it)) return false;
    const auto some_of_it = [&](const std::string& glob) {
      const std::string_view front = std::string_view(glob).substr(0, glob.find('/'));
      const std::size_t star = front.find('*');  // runs over the `/` too: only the text before it belongs to the kind
      return star == std::string_view::npos ? front == kind : kind.starts_with(front.substr(0, star));
    };
    return include.empty() || std::any_of(include.begin(), include.end(), some_of_it);
  }
  /// Returns a text that differs if the scope differs: put it into cursors, because one of another scope is not valid.
  std::string text() const {
    std::string out;  // with lengths: a glob may hold any character
    for (const auto& glob : include) out += "+" + std::to_string(glob.size()) + ":" + glob;
    for (const auto& glob : exclude) out += "-" + std::to_string(glob.size()) + ":" + glob;
    return out;
  }
};

}  // namespace driftd::sdk
