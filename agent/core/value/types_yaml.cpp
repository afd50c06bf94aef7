// SPDX-License-Identifier: Apache-2.0
// Parses YAML into a value. A first pass measures the text by its events and its aliases by what they expand to, so
// that a YAML bomb is refused before a tree exists.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>
#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "base/escape.hpp"
#include "base/paced_input.hpp"
#include "core/value/parse_limits.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxText = 1u << 20;  ///< bytes
constexpr std::size_t kMaxYamlDepth = 128;
constexpr std::size_t kMaxAhead = 96'000;  ///< units of PacedInput: at most 27 MiB of tokens
constexpr std::size_t kNodeBytes = 80;     ///< memory of a node besides its text

/// Identifies an anchor together with its document, because yaml-cpp numbers them again in each.
using Anchor = std::pair<std::size_t, YAML::anchor_t>;

/// Base of both passes: counts the documents and reports the parser's progress.
class Events : public YAML::EventHandler {
 public:
  explicit Events(PacedInput& input) : input_(input) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    input_.progress();
    // after a stray `]` yaml-cpp 0.7 returns empty documents for ever
    if (mark.pos <= last_) throw YAML::ParserException(mark, "text that belongs to no document");
    last_ = mark.pos;
    ++document_;
  }
  void OnDocumentEnd() override {}

 protected:
  Anchor anchor_of(YAML::anchor_t anchor) const { return {document_, anchor}; }
  PacedInput& input_;

 private:
  int last_ = -1;
  std::size_t document_ = 0;
};

/// First pass: throws std::length_error if the tree would be too large, without building it.
class Measure final : public Events {
 public:
  using Events::Events;
  std::set<Anchor> used;  ///< anchors that an alias uses; the second pass keeps only these

  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override { leaf(0, anchor); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t anchor, const std::string& text) override {
    leaf(text.size(), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = sizes_.find(anchor_of(anchor));
    if (found == sizes_.end()) throw YAML::ParserException(mark, "an alias is inside the node that it refers to");
    if (used.insert(found->first).second) charge(found->second);  // the copy that is kept
    charge(found->second);
    add(found->second, 0);
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Size {
    std::size_t nodes = 1, bytes = kNodeBytes, height = 0;
  };
  struct Frame {
    Size size;
    YAML::anchor_t anchor = 0;
  };

  void charge(const Size& size) {
    input_.progress();
    nodes_ += size.nodes;
    bytes_ += size.bytes;
    if (nodes_ > kMaxNodes)
      throw std::length_error("more than " + std::to_string(kMaxNodes) + " nodes, its aliases expanded");
    if (bytes_ > kMaxTree)
      throw std::length_error("more than " + std::to_string(kMaxTree >> 20) + " MiB, its aliases expanded");
    if (stack_.size() + size.height > kMaxYamlDepth)
      throw std::length_error("nested deeper than " + std::to_string(kMaxYamlDepth));
  }
  void leaf(std::size_t text, YAML::anchor_t anchor) {
    const Size size{1, kNodeBytes + text, 0};
    charge(size);
    add(size, anchor);
  }
  void open(YAML::anchor_t anchor) {
    charge({});
    stack_.push_back({{}, anchor});
  }
  void close() {
    input_.progress();
    const Frame done = stack_.back();
    stack_.pop_back();
    add(done.size, done.anchor);
  }
  void add(const Size& size, YAML::anchor_t anchor) {
    if (anchor != 0) sizes_[anchor_of(anchor)] = size;
    if (stack_.empty()) return;
    Size& parent = stack_.back().size;
    parent.nodes += size.nodes;
    parent.bytes += size.bytes;
    parent.height = std::max(parent.height, size.height + 1);
  }

  std::vector<Frame> stack_;
  std::map<Anchor, Size> sizes_;
  std::size_t nodes_ = 0, bytes_ = 0;
};

/// Reads a plain scalar by the core schema of YAML 1.2: null, booleans and numbers; everything else is text.
Value scalar(const std::string& text, bool quoted) {
  if (quoted) return Value(text);
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return Value();
  const auto word = lower(text);
  if (word == "true" || word == "false") return Value(word == "true");
  if (const auto number = decimal(text); number && text.find_first_of(" \t") == std::string::npos)
    return Value(Value::Number{*number});
  return Value(text);
}

/// Second pass: builds the documents as values.
class Build final : public Events {
 public:
  Build(PacedInput& input, const std::set<Anchor>& used) : Events(input), used_(used) {}
  Value::Array documents;

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, {Value(), {}}, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    add(mark, {scalar(text, tag == "!"), text}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = kept_.find(anchor_of(anchor));
    if (found == kept_.end()) throw YAML::ParserException(mark, "an alias is inside the node that it refers to");
    Node copy = found->second;
    add(mark, std::move(copy), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, Value(Value::Array{}), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, Value(Value::Object{}), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Node {
    Value value;
    std::optional<std::string> text;  ///< text of a scalar as written, for keys
  };
  struct Frame {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key;
  };

  bool expects_key() const { return !stack_.empty() && stack_.back().value.object() != nullptr && !stack_.back().key; }

  void open(const YAML::Mark& mark, Value value, YAML::anchor_t anchor) {
    input_.progress();
    if (expects_key()) throw YAML::ParserException(mark, "a key that is not a scalar");
    stack_.push_back({std::move(value), mark, anchor, {}});
  }
  void close() {
    Frame done = std::move(stack_.back());
    stack_.pop_back();
    add(done.mark, {std::move(done.value), {}}, done.anchor);
  }
  void add(const YAML::Mark& mark, Node node, YAML::anchor_t anchor) {
    input_.progress();
    if (anchor != 0 && used_.contains(anchor_of(anchor))) kept_[anchor_of(anchor)] = node;
    if (stack_.empty()) {
      documents.push_back(std::move(node.value));
    } else if (expects_key()) {
      if (!node.text) throw YAML::ParserException(mark, "a key that is not a scalar");
      stack_.back().key = std::move(*node.text);
    } else {
      add_to(mark, stack_.back(), std::move(node.value));
    }
  }
  static void add_to(const YAML::Mark& mark, Frame& parent, Value value) {
    if (auto* array = parent.value.array()) {
      array->push_back(std::move(value));
      return;
    }
    const auto [at, fresh] = parent.value.object()->try_emplace(std::move(*parent.key), std::move(value));
    parent.key.reset();
    if (!fresh) throw YAML::ParserException(mark, "the key '" + std::string(front(at->first, 64)) + "' occurs twice");
  }

  const std::set<Anchor>& used_;
  std::vector<Frame> stack_;
  std::map<Anchor, Node> kept_;
};

template <class Handler>
void feed(PacedInput& input, Handler& handler) {
  std::istream stream(&input);
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(handler)) {
  }
}

/// First pass. Returns the anchors that aliases use.
std::set<Anchor> measure_text(std::string_view text) {
  // Appended to the text: yaml-cpp accepts an unclosed quote as a text up to the end, if white space follows it there.
  // With this character, which is a comment everywhere else, it refuses.
  PacedInput first(text, kMaxAhead, "\n#");
  Measure measure(first);
  feed(first, measure);
  return std::move(measure.used);
}

/// Both passes.
Value parse_text(std::string_view text) {
  const std::set<Anchor> used = measure_text(text);
  PacedInput second(text, kMaxAhead);
  Build build(second, used);
  feed(second, build);
  if (build.documents.empty()) return Value();
  if (build.documents.size() == 1) return std::move(build.documents.front());
  return Value(std::move(build.documents));
}

}  // namespace

Result<Value> yaml(std::string_view text) {
  if (text.size() > kMaxText) return too_large("YAML: more than 1 MiB");
  // yaml-cpp reads a text with such a byte as UTF-16 or UTF-32 and drops incomplete characters, so that different texts
  // would look equal.
  if (text.find('\0') != std::string_view::npos)
    return fail(Code::invalid, "YAML: the text contains a NUL byte, which YAML does not allow");
  // Most large flow collections are JSON, which is a part of YAML and is read with a tenth of the memory.
  const auto first = strip(text).substr(0, 1);
  if (first == "{" || first == "[") {
    if (auto json = parse(text, ParseLimits{.nodes = kMaxNodes}); json || json.error().code == Code::budget)
      return json;
  }
  try {
    return parse_text(text);
  } catch (const YAML::Exception& error) {
    if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) return fail(Code::invalid, "YAML: a quote that is not closed");
    return fail(Code::invalid, "YAML " + std::to_string(error.mark.line + 1) + ":" +
                                   std::to_string(error.mark.column + 1) + ": " + error.msg);
  } catch (const std::length_error& error) {
    return too_large(std::string("YAML: ") + error.what());
  }
}

}  // namespace driftd::core::types
