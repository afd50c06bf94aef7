// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>
#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/escape.hpp"
#include "base/paced_input.hpp"

namespace driftd::config {
namespace {

Position position_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

constexpr std::size_t kMaxAhead = 96'000;  ///< in units of PacedInput: the scanner may keep some 27 MiB

/// The size that an alias of a node adds to the tree.
struct Size {
  std::size_t nodes = 1, bytes = 0, height = 0;
};

void add(Size& total, const Size& part) {
  total.nodes += part.nodes;
  total.bytes += part.bytes;
  total.height = std::max(total.height, part.height + 1);
}

Size measure(const Node& node) {
  Size total{1, node.text.size(), 0};
  for (const auto& item : node.items) add(total, measure(item));
  for (const auto& member : node.members) {
    add(total, measure(member.value));
    total.bytes += member.key.size();
  }
  return total;
}

/// Throws if a `#` follows directly on the quoted text that begins at `mark`. YAML requires a blank before a comment,
/// but yaml-cpp does not: an unclosed quote would end at the next quote, and a `"#x"` there would become a comment that
/// hides a setting.
void refuse_glued_comment(std::string_view text, YAML::Mark mark) {
  const auto now = [&] {
    return static_cast<std::size_t>(mark.pos) < text.size() ? text[static_cast<std::size_t>(mark.pos)] : '\0';
  };
  const auto go_on = [&] {
    const bool line_ends = now() == '\n';
    ++mark.pos;
    mark.line += line_ends ? 1 : 0;
    mark.column = line_ends ? 0 : mark.column + 1;
  };
  while (now() == '&' || now() == '!') {  // skips its anchor and tag
    while (now() != '\0' && now() != ' ' && now() != '\t' && now() != '\n') go_on();
    while (now() == ' ' || now() == '\t' || now() == '\n') go_on();
  }
  const char quote = now();
  if (quote != '"' && quote != '\'') return;
  for (go_on(); now() != '\0'; go_on()) {
    if (quote == '"' && now() == '\\') {
      go_on();
    } else if (now() == quote) {
      go_on();
      if (quote == '"' || now() != quote) break;  // two single quotes are one quote in the text
    }
  }
  if (now() == '#')
    throw YAML::ParserException(
        mark, "a '#' directly behind a closing quote: a comment has a blank before it, or a quote above is not closed");
}

/// Builds the tree from the parser's events. Throws YAML::ParserException to stop the parser at a mistake.
class Builder final : public YAML::EventHandler {
 public:
  Builder(PacedInput& input, std::string_view text) : input_(input), text_(text) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    grow(mark, {});
    put(mark, make(Node::Kind::null, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      throw YAML::ParserException(mark, "an alias is inside the node that it refers to");
    }
    grow(mark, found->second.size);  // checked before the copy
    Node copy = found->second.node;
    copy.at = position_of(mark);
    put(mark, std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    last_scalar_ = mark;
    grow(mark, {1, text.size(), 0});
    refuse_glued_comment(text_, mark);
    Node node = make(Node::Kind::scalar, mark);
    node.text = text;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    refuse_tag(mark, node.quoted ? "" : tag);
    if (!node.quoted && (text.empty() || text == "~" || text == "null")) node.kind = Node::Kind::null;
    put(mark, std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(mark, Node::Kind::list, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(mark, Node::Kind::map, anchor);
  }
  void OnMapEnd() override { close(); }

  Node take() { return root_ ? std::move(*root_) : Node{}; }
  const YAML::Mark& last_scalar() const { return last_scalar_; }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    std::optional<std::pair<std::string, Position>> key;
  };
  struct Anchored {
    Node node;
    Size size;
  };

  static Node make(Node::Kind kind, const YAML::Mark& mark) {
    Node node;
    node.kind = kind;
    node.at = position_of(mark);
    return node;
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!" && tag.rfind("tag:yaml.org,2002:", 0) != 0) {
      throw YAML::ParserException(mark, "tags such as " + tag + " are not used here");
    }
  }
  void grow(const YAML::Mark& mark, const Size& by) {
    input_.progress();
    nodes_ += by.nodes;
    bytes_ += by.bytes;
    if (nodes_ > kMaxNodes) {
      throw YAML::ParserException(mark, "aliases and lists make more than " + std::to_string(kMaxNodes) + " nodes");
    }
    if (bytes_ > kMaxTreeBytes) {
      throw YAML::ParserException(mark,
                                  "aliases make more than " + std::to_string(kMaxTreeBytes >> 20) + " MiB of text");
    }
    if (stack_.size() + by.height > kMaxDepth) {
      throw YAML::ParserException(mark, "lists and maps are nested deeper than " + std::to_string(kMaxDepth));
    }
  }
  void open(const YAML::Mark& mark, Node::Kind kind, YAML::anchor_t anchor) {
    grow(mark, {});
    if (!stack_.empty() && stack_.back().node.kind == Node::Kind::map && !stack_.back().key) {
      throw YAML::ParserException(mark, "a key must be text");
    }
    stack_.push_back({make(kind, mark), anchor, mark, {}});
  }
  void close() {
    Frame done = std::move(stack_.back());
    stack_.pop_back();
    put(done.mark, std::move(done.node), done.anchor);
  }
  void put(const YAML::Mark& mark, Node node, YAML::anchor_t anchor) {
    if (anchor != 0) keep(mark, node, anchor);
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = stack_.back();
    if (parent.node.kind == Node::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.kind != Node::Kind::scalar) throw YAML::ParserException(mark, "a key must be text");
      parent.key = {std::move(node.text), node.at};
    } else {
      add_member(parent, std::move(node));
    }
  }
  /// Keeps the copy for later aliases. Anchors inside anchors are copied once for each level.
  void keep(const YAML::Mark& mark, const Node& node, YAML::anchor_t anchor) {
    const Size size = measure(node);
    kept_ += size.bytes + size.nodes * sizeof(Node::Member);
    if (kept_ > 2 * kMaxTreeBytes) throw YAML::ParserException(mark, "anchors inside anchors take more than 16 MiB");
    anchored_[anchor] = {node, size};
  }
  static void add_member(Frame& parent, Node node) {
    if (node.kind == Node::Kind::null)
      node.at = parent.key->second;  // for null the parser gives the position of the next token
    parent.node.members.push_back({std::move(parent.key->first), parent.key->second, std::move(node)});
    parent.key.reset();
  }

  PacedInput& input_;
  std::string_view text_;  ///< the whole file
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Anchored> anchored_;
  std::optional<Node> root_;
  YAML::Mark last_scalar_ = YAML::Mark::null_mark();
  std::size_t nodes_ = 0, bytes_ = 0, kept_ = 0;
};

/// Checks the bytes in one pass: encoding, control characters, tabs in an indentation.
class ByteCheck {
 public:
  ByteCheck(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<ConfigError> run() {
    for (std::size_t at = 0; at < text_.size() && errors_.size() < 20;) {
      const std::size_t length = utf8_sequence(text_.substr(at));
      if (length == 0) {
        error("a byte that is not UTF-8", "the text in UTF-8", "save the file as UTF-8");
        return errors_;
      }
      if (length == 1) check(text_[at]);
      if (length > 1) indented_ = true;
      at += length;
      column_ += static_cast<int>(length);
      if (text_[at - 1] == '\n') next_line();
    }
    return errors_;
  }

 private:
  void check(char c) {
    if (c == '\t' && !indented_) {
      error("a tab in the indentation", "spaces", "replace the tab by spaces");
      indented_ = true;
    } else if (c == '\0') {
      error("a NUL byte", "text", "remove it; is this the file that you meant?");
    } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F) {
      error("a control character", "text", "remove it");
    }
    if (c != ' ' && c != '\r' && c != '\n') indented_ = true;
  }
  void next_line() {
    ++line_;
    column_ = 1;
    indented_ = false;
  }
  void error(std::string what, std::string expected, std::string next) {
    errors_.push_back({file_, {line_, column_}, std::move(what), std::move(expected), "", std::move(next)});
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<ConfigError> errors_;
  int line_ = 1, column_ = 1;
  bool indented_ = false;
};

std::vector<ConfigError> one_error(const std::string& file, Position at, std::string what, std::string expected = "",
                                   std::string found = "", std::string next = "") {
  return {{file, at, std::move(what), std::move(expected), std::move(found), std::move(next)}};
}

/// Parses the first document and returns why the library stopped. Empty if it did not. Sets `seen` to the last scalar
/// before that.
std::optional<YAML::Exception> find_stop(const std::string& text, YAML::Mark& seen) {
  PacedInput input(text, kMaxAhead);
  std::istream in(&input);
  Builder builder(input, text);
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& stop) {
    seen = builder.last_scalar();
    return stop;
  } catch (const std::length_error&) {  // parse_yaml() gets the same error and reports it
  }
  seen = builder.last_scalar();
  return std::nullopt;
}

/// Returns the position of an unclosed quote. yaml-cpp accepts the rest of the file as the quoted text if the file ends
/// with blanks or a line break. So a final `#` is appended, which is a comment anywhere else: inside a quote the parser
/// fails then.
std::optional<Position> open_quote(std::string_view text) {
  YAML::Mark seen;
  const auto stop = find_stop(std::string(text) + "\n#", seen);
  if (!stop || stop->msg != YAML::ErrorMsg::EOF_IN_SCALAR) return std::nullopt;
  const auto accepted = find_stop(std::string(text) + "\n", seen);
  const auto is_quote = [&](const YAML::Mark& mark) {
    const auto at = static_cast<std::size_t>(mark.pos);
    return !mark.is_null() && at < text.size() && (text[at] == '"' || text[at] == '\'');
  };
  if (accepted && is_quote(accepted->mark))
    return position_of(accepted->mark);  // this text contains the unclosed quote
  return position_of(seen.is_null() ? stop->mark : seen);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const auto& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

tl::expected<Node, std::vector<ConfigError>> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) {
    return tl::unexpected(one_error(file, {1, 1}, "the file is too big", "at most 1 MiB",
                                    std::to_string(text.size()) + " bytes", "is this the file that you meant?"));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (auto errors = ByteCheck(text, file).run(); !errors.empty()) return tl::unexpected(std::move(errors));
  if (const auto at = open_quote(text)) {
    return tl::unexpected(one_error(file, *at, "a quote that is not closed", "the same quote at the end of the text",
                                    "the end of the file", "close it; all below it is taken for its text"));
  }
  try {
    PacedInput input(text, kMaxAhead);
    std::istream in(&input);
    YAML::Parser parser(in);
    Builder builder(input, text);
    if (!parser.HandleNextDocument(builder)) return Node{};
    Node root = builder.take();
    Builder second(input, text);
    if (parser.HandleNextDocument(second)) {
      return tl::unexpected(one_error(file, second.take().at, "a second document (---)", "one document", "",
                                      "put everything into the first"));
    }
    return root;
  } catch (const YAML::Exception& e) {
    const Position at = e.mark.is_null() ? Position{1, 1} : position_of(e.mark);
    return tl::unexpected(
        one_error(file, at, "not readable as YAML: " + e.msg, "", "", "correct the text at this place"));
  } catch (const std::length_error& e) {  // thrown by PacedInput; the position is unknown because the scanner is far
                                          // ahead
    return tl::unexpected(
        one_error(file, {1, 1}, std::string("not readable as YAML: ") + e.what(), "", "", "write it with indentation"));
  }
}

std::string describe(const Node& node, bool secret) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  if (secret || node.text.find("${") != std::string::npos) return "text";
  const std::string shown = node.text.size() > 60 ? node.text.substr(0, 57) + "..." : node.text;
  return node.quoted ? "text \"" + shown + "\"" : "'" + shown + "'";
}

}  // namespace driftd::config
