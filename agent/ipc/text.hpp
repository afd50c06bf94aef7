// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::ipc {

/// Returns true if all of the text is valid UTF-8; also for the empty text.
bool is_utf8(std::string_view text);
/// Returns up to `max_bytes` bytes of the text. Bytes that are not valid UTF-8 become `?`. A
/// sequence that does not fit is left out whole.
std::string printable(std::string_view text, std::size_t max_bytes);
/// Like printable(), on one line: what a terminal or a line reader would act on (base/escape.hpp) also becomes `?`.
std::string one_line(std::string_view text, std::size_t max_bytes);

/// Replaces each run of white space by one blank, so that a library's message with tabs and line ends fits a table
/// cell.
std::string as_sentence(std::string_view text);

/// Removes an instance's secrets from what leaves the worker, and in the agent once more from what a worker sent. Holds
/// the secrets in plain text. Immutable; any thread.
class Scrubber {
 public:
  Scrubber() = default;
  explicit Scrubber(const std::map<std::string, std::string>& secrets) { add_all(secrets, {}); }
  /// Makes the scrubber of an instance. A secret whose token is not in its settings was given to the plugin in a
  /// setting that the schema does not call secret. If it is an address, only its secret parts are removed; if not, it
  /// stays in documents, where a host name is an ordinary word.
  static Scrubber of_instance(const std::map<std::string, std::string>& secrets, std::string_view settings_json) {
    Scrubber out;
    out.add_all(secrets, settings_json);
    return out;
  }
  /// For logs, diagnostics and reasons. Every secret of 3 bytes or more becomes `[REDACTED]`, also if it is
  /// percent-decoded or percent-encoded, in base64, or only a part of it (the password of a URL, base64 of
  /// user:password, a line of a key). URLs lose user-info and query.
  std::string text(std::string_view text) const;
  /// Like text(), printable and up to `max_bytes` bytes. A secret across the cut is removed as a whole, and so is a URL
  /// that does not end before the cut. So callers pass texts as they came and never cut them before. The cost depends
  /// on `max_bytes` and the longest secret, not on the length of the text.
  std::string printable(std::string_view text, std::size_t max_bytes) const;
  std::string one_line(std::string_view text, std::size_t max_bytes) const;  ///< the same on one line
  /// Returns how many bytes behind its cut a text must keep, so that a secret across the cut is recognized.
  std::size_t lookahead() const;
  /// For bodies and status. Removes only secrets of 12 bytes or more, plain or JSON-escaped; shorter ones (`postgres`)
  /// are also ordinary names. The schema's `sensitive` protects a body; this only catches what it misses.
  std::string document(std::string json) const;

 private:
  void add_all(const std::map<std::string, std::string>& secrets, std::string_view settings_json);
  void add(const std::string& form, bool everywhere);
  void add_forms(const std::string& secret, bool everywhere);
  void add_parts(std::string_view text);
  void add_lines(std::string_view secret);
  std::string scrub_prefix(std::string_view text, std::size_t max_bytes) const;
  std::vector<std::string> all_, long_;  ///< forms for text() and for document(), longest first
};

}  // namespace driftd::ipc
