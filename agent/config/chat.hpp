// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/section.hpp"

namespace driftd::config {

/// Reads `format` and `template` of a sink. The mistakes of a template have its own name, line and column.
sinks::ChatSettings read_chat(Section& sink);

/// Parses a template. Reports every mistake in it: a field that does not exist, or not there; `{{` without its end; a
/// `$` key that means nothing. `report.file` names the template.
sinks::ChatNode parse_chat_template(Report& report, std::string_view text);

/// Returns the built-in template of a format as its author wrote it, in YAML. Empty for ChatFormat::none.
std::string_view builtin_chat_template(sinks::ChatFormat format);

/// The format of a name: generic, slack, teams; `none` for any other.
sinks::ChatFormat chat_format(std::string_view name);

/// Returns the settings of a format, with its built-in template or the one of a file. Mistakes go to the report.
sinks::ChatSettings chat_settings(Report& report, sinks::ChatFormat format, const std::string& template_file);

}  // namespace driftd::config
