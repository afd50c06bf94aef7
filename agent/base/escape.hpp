// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace driftd {

/// Bytes of the well-formed UTF-8 sequence at the front (Unicode 15, table 3-7); 0: none.
std::size_t utf8_sequence(std::string_view text);

/// Of one well-formed sequence that is all of `sequence`.
char32_t code_point(std::string_view sequence);

/// Whether a terminal or a reader of lines would obey this sequence instead of showing it: C0 and C1 controls, DEL,
/// line and paragraph separators, marks that turn the direction of what follows.
bool is_control_sequence(std::string_view sequence);

/// At most `bytes` of the front of a text, and no part of a character. [any thread]
std::string_view front(std::string_view text, std::size_t bytes);

/// Two texts of which one is longer than `bytes`, each cut to about that around the first difference, with `…` where
/// something is missing: whoever writes a value decides where in it the news is. Shorter ones are whole. [any thread]
std::pair<std::string, std::string> around_difference(std::string_view before, std::string_view now, std::size_t bytes);

/// The text itself where it is UTF-8; else with U+FFFD in place of each byte that is none. One such byte in one value
/// and a whole JSON document is unreadable. [any thread]
std::string valid_utf8(std::string text);

/// Text on one line that shows what would be obeyed: `\x1b`, `\u202e`; bytes that are no UTF-8 as `\xff`. [any thread]
std::string escaped(std::string_view text);

}  // namespace driftd
