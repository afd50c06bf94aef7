// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace driftd {

/// Returns the length of the well-formed UTF-8 sequence at the front (Unicode 15, table 3-7), 0 if there is none.
std::size_t utf8_sequence(std::string_view text);

/// Decodes one well-formed sequence, which must be the whole of `sequence`.
char32_t code_point(std::string_view sequence);  ///< not checked: see utf8_sequence()

/// Returns true if a terminal or a line reader would act on this character (one UTF-8 sequence) instead of showing it:
/// C0 and C1 controls, DEL, line and paragraph separators, and marks that change the writing direction.
bool is_control_character(std::string_view sequence);

/// Returns at most the first `bytes` of a text, without a cut-off character. [any thread]
std::string_view front(std::string_view text, std::size_t bytes);

/// Returns both texts, each cut to about `bytes` around their first difference, with `…` where something is missing.
/// The writer of a value decides where it changes, so its beginning alone could hide a change. If both fit, they are
/// returned whole. [any thread]
std::pair<std::string, std::string> around_difference(std::string_view before, std::string_view now, std::size_t bytes);

/// Returns the text with U+FFFD in place of each byte that is not valid UTF-8. One such byte in one value would make a
/// whole JSON document unreadable. [any thread]
std::string valid_utf8(std::string text);

/// Returns the text on one line, with control characters as `\x1b` or `\u202e` and bytes that are not valid UTF-8 as
/// `\xff`. [any thread]
std::string escaped(std::string_view text);

}  // namespace driftd
