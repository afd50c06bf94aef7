// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::ipc {

bool is_utf8(std::string_view text);
/// At max_bytes `max_bytes` bytes; what is no UTF-8 becomes `?`.
std::string printable(std::string_view text, std::size_t max_bytes);
/// The same on one line: what a terminal or a reader of lines would obey (base/escape.hpp) becomes `?`.
std::string one_line(std::string_view text, std::size_t max_bytes);

/// As a sentence in a cell of a table: libraries send tabs and line ends, and each run of those becomes one blank.
std::string as_sentence(std::string_view text);

/// Takes an instance's secrets out of what leaves the worker. Immutable; any thread.
class Scrubber {
 public:
  Scrubber() = default;
  explicit Scrubber(const std::map<std::string, std::string>& secrets) { add_all(secrets, {}); }
  /// Of an instance: a secret whose token does not stand in its settings was revealed to the plugin in a setting that
  /// is no secret by its schema. Of such an address only the secret parts are taken out, and a name of a server is an
  /// ordinary word of a body.
  static Scrubber of_instance(const std::map<std::string, std::string>& secrets, std::string_view settings_json) {
    Scrubber out;
    out.add_all(secrets, settings_json);
    return out;
  }
  /// For logs, diagnostics, reasons: every secret of at least 3 bytes becomes `[REDACTED]`, also percent-decoded or
  /// encoded, in base64, and in parts (the password of a URL, base64 of user:password, each line of a key). URLs lose
  /// user-info and query.
  std::string text(std::string_view text) const;
  /// The same of a text of any length, printable and at max_bytes `max_bytes` bytes. A secret that lies across the cut
  /// is taken out as a whole, and so is a URL that does not end before it: so texts are given as they came, never cut
  /// before. Costs what `max_bytes` and the longest secret cost, however long the text is.
  std::string printable(std::string_view text, std::size_t max_bytes) const;
  std::string one_line(std::string_view text, std::size_t max_bytes) const;
  /// So many bytes behind its cut a text must keep, that it can still be told what lies across it.
  std::size_t lookahead() const;
  /// For bodies and status: only secrets of at least 12 bytes, plain or JSON-escaped; shorter ones (`postgres`) are
  /// also ordinary names. The schema's `sensitive` is what protects a body; this is the net under it.
  std::string document(std::string json) const;

 private:
  void add_all(const std::map<std::string, std::string>& secrets, std::string_view settings_json);
  void add(const std::string& form, bool everywhere);
  void add_forms(const std::string& secret, bool everywhere);
  void add_parts(std::string_view text);
  void add_lines(std::string_view secret);
  std::string scrub_prefix(std::string_view text, std::size_t max_bytes) const;
  std::vector<std::string> all_, long_;  ///< longest first
};

}  // namespace driftd::ipc
