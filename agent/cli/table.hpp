// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::cli {

/// With `none`, a text has the terminal's own colour.
enum class Colour { none, red, green, yellow, dim, bold };

/// One field of a row. It converts from a text.
struct Cell {
  std::string text;
  Colour colour = Colour::none;
  Cell(std::string from, Colour in = Colour::none) : text(std::move(from)), colour(in) {}
  Cell(const char* from) : text(from) {}
};

/// Columns of text under a head, two spaces apart. Terminal control characters (ESC, newlines …) are printed escaped.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }  ///< one cell for each column
  bool empty() const { return rows_.empty(); }                          ///< no rows; the head does not count
  void print(std::ostream& out, bool colour) const;

 private:
  std::vector<std::string> head_;  ///< titles of the columns
  std::vector<std::vector<Cell>> rows_;
};

/// Makes text safe for a terminal (base/escape.hpp).
std::string printable(std::string_view text);
std::string painted(std::string_view text, Colour colour, bool on);  ///< unchanged if `on` is false
/// Returns green for up, ok, approved …; yellow for pending, degraded …; red for down, failed, dead …
Colour colour_of(std::string_view state);

}  // namespace driftd::cli
