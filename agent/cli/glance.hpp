// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/value/attribute_rule.hpp"

namespace driftd::cli {

/// One line of what differs between two values.
struct GlanceLine {
  char sign;  ///< `-` before, `+` after, `~` both, space: context of a text
  std::string text;
};

/// How a difference is shown. `width`: columns of a line. `lines`: the maximum; a last line counts what is left out.
struct GlanceOptions {
  std::size_t width = 76;
  std::size_t lines = 12;
  const core::AttributeRule* rule = nullptr;  ///< of the attribute, for its unit; null if it is not known
};

/// Returns the lines that say what differs: members by path, lists as added, removed, moved and changed, texts as a
/// unified diff, long lines around their first difference, sizes and durations as people write them, too. `name` is the
/// attribute's name, from which a unit is guessed without a rule (`retention.ms`).
std::vector<GlanceLine> glance(const std::optional<core::Value>& before, const std::optional<core::Value>& after,
                               const std::string& name, const GlanceOptions& options = {});

/// Returns a number of bytes or nanoseconds as people write it, exactly: `4 MiB`, `7 d`, `1 h 30 min`. Empty if it has
/// no shorter form.
std::string bytes_for_people(std::int64_t bytes);
std::string duration_for_people(std::int64_t ns);

}  // namespace driftd::cli
