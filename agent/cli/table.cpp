// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>
#include <array>
#include <ostream>

#include "base/escape.hpp"

namespace driftd::cli {
namespace {

/// Returns the number of characters: bytes that do not continue a UTF-8 sequence.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::red:
      return "\x1b[31m";
    case Colour::green:
      return "\x1b[32m";
    case Colour::yellow:
      return "\x1b[33m";
    case Colour::dim:
      return "\x1b[2m";
    case Colour::bold:
      return "\x1b[1m";
    case Colour::none:
      break;
  }
  return "";
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text); }

std::string painted(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::none) return std::string(text);
  return std::string(code_of(colour)) + std::string(text) + "\x1b[0m";
}

Colour colour_of(std::string_view state) {
  if (one_of(state, {"up", "ok", "approved", "auto-applied", "reverted", "running", "equal", "yes", "in-process"})) {
    return Colour::green;
  }
  if (one_of(state, {"pending", "degraded", "late", "backoff", "starting", "unknown", "held", "ignored"})) {
    return Colour::yellow;
  }
  if (one_of(state, {"down", "failed", "denied", "parked", "rejected", "drift", "no", "dead", "no plugin", "refused"}))
    return Colour::red;
  return Colour::none;
}

void Table::print(std::ostream& out, bool colour) const {
  std::vector<std::size_t> widths;
  for (const auto& title : head_) widths.push_back(width(title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(printable(row[i].text)));
  }
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string shown = printable(cells[i].text);
      text += painted(shown, cells[i].colour, colour);
      if (i + 1 < cells.size()) text += std::string(widths[i] - width(shown) + 2, ' ');
    }
    while (text.ends_with(' ')) text.pop_back();
    out << text << "\n";
  };
  std::vector<Cell> head;
  for (const auto& title : head_) head.emplace_back(title, Colour::bold);
  line(head);
  for (const auto& row : rows_) line(row);
}

}  // namespace driftd::cli
