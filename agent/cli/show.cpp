// SPDX-License-Identifier: Apache-2.0
#include "cli/show.hpp"

#include <algorithm>

#include "cli/glance_list.hpp"

namespace driftd::cli {
namespace {

constexpr std::size_t kColumns = 80;

bool is_leaf(const core::Value& value) { return value.object() == nullptr && value.array() == nullptr; }

/// Prints `label: text` in lines of at most 80 columns, broken at spaces; the next lines are indented like the first.
void paragraph(const Context& context, const std::string& text, std::size_t indent) {
  const std::string escaped = printable(text), space(indent, ' ');
  for (std::size_t at = 0; at < escaped.size();) {
    const std::size_t room = kColumns - indent;
    std::size_t end = escaped.size();
    if (end - at > room) {
      end = escaped.rfind(' ', at + room);
      if (end == std::string::npos || end <= at) end = std::min(escaped.find(' ', at), escaped.size());
    }
    context.out() << space << escaped.substr(at, end - at) << "\n";
    at = end < escaped.size() ? end + 1 : end;
  }
}

}  // namespace

void show_glance(const Context& context, const std::vector<GlanceLine>& lines, std::size_t indent) {
  const std::string space(indent, ' ');
  if (lines.empty()) context.out() << space << "~ [REDACTED] → [REDACTED]\n";
  for (const auto& line : lines) {
    const Colour colour = line.sign == '-' ? Colour::red : line.sign == '+' ? Colour::green : Colour::none;
    context.out() << space
                  << painted(std::string(1, line.sign) + " " + printable(line.text), colour, context.streams.colour)
                  << "\n";
  }
}

void show_step(const Context& context, const ExplainedStep& step) {
  const bool colour = context.streams.colour;
  context.out() << painted(printable(step.path), Colour::bold, colour) << "  "
                << painted(printable(step.verdict), colour_of(step.verdict), colour) << "\n";
  paragraph(context, step.reason, 2);
  paragraph(context, "rule: " + step.rule, 2);
  const auto side = [&](const char* name, const std::string& value, const std::string& read) {
    context.out() << "  " << name << printable(short_text(value.empty() ? "(absent)" : value, kColumns - 10)) << "\n";
    if (read == value || read.empty()) return;
    context.out() << "        read as " << printable(short_text(read, kColumns - 18)) << "\n";
  };
  side("old:  ", step.old_value, step.old_read);
  side("new:  ", step.new_value, step.new_read);
  if (step.verdict != "drift" || std::max(step.old_value.size(), step.new_value.size()) <= kColumns - 10) return;
  const auto before = core::parse(step.old_value), after = core::parse(step.new_value);
  if (!before || !after || is_leaf(*before) || is_leaf(*after)) return;
  context.out() << "  what differs:\n";
  show_glance(context, glance(*before, *after, step.path, {.width = 72}), 4);
}

}  // namespace driftd::cli
