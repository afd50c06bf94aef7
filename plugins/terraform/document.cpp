// SPDX-License-Identifier: Apache-2.0
#include "terraform/document.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "driftd/sdk/types.hpp"
#include "terraform/scanner.hpp"
#include "terraform/text_members.hpp"
#include "terraform/window.hpp"

namespace driftd::terraform {
namespace {

/// One walk over a document. Functions that return bool return false if the visitor ends the walk.
class Walk {
 public:
  /// Either outline may be null: nothing is learned, nothing is known.
  Walk(Window& window, DocumentVisitor& to, Outline* learned, const Outline* known)
      : window_(window),
        to_(to),
        learned_(learned),
        known_(known) {}

  void run() {
    const char first = next();
    if (first != '{') {
      scan_away();
      no_more();
      corrupt("the state file holds no JSON object");
    }
    if (members([this] { return top_member(); })) no_more();
  }

 private:
  /// Returns the next byte that is not white space, 0 at the end of the text.
  char next() {
    for (;;) {
      const char* at = behind_blanks(window_.at());
      window_.move_to(at);
      if (at < window_.end()) return *at == '\0' ? '\1' : *at;
      if (window_.last()) return '\0';
      window_.more();
    }
  }
  void skip_byte() { window_.move_to(window_.at() + 1); }
  [[noreturn]] void fail(const char* expected) {
    window_.fail(window_.at(), window_.at() >= window_.end() ? "the text ends here" : expected);
  }
  void no_more() {
    if (next() != '\0') fail("the document has ended before this");
  }

  /// Reads a value to its end. Returns where it begins; that text is kept if `keeps` and if the window keeps it.
  std::uint64_t scan(bool keeps) {
    next();
    const std::uint64_t begin = window_.offset();
    scanner_.begin();
    for (;;) {
      const char* at = window_.at();
      const auto result = scanner_.run(keeps ? window_.pointer(begin) : nullptr, at, window_.end(), window_.last());
      window_.move_to(at);
      if (result == Scanner::Result::value) return begin;
      if (result == Scanner::Result::error) window_.fail(at, scanner_.expected());
      window_.more();
    }
  }
  void scan_away() { scan(false); }
  /// Returns the text from there to the cursor, valid until the next byte is read.
  std::string_view since(std::uint64_t begin) const {
    return {window_.pointer(begin), static_cast<std::size_t>(window_.offset() - begin)};
  }
  /// Reads a value and returns its text, valid until the window is released and read from.
  std::string_view part() {
    next();
    window_.keep();
    const auto begin = scan(true);
    if (scanner_.traits().values > kMaxPartValues) too_many_values(kMaxPartValues);
    window_.release();
    return since(begin);
  }
  /// Reads a key and the colon behind it into key_.
  void key(bool kept) {
    if (next() != '"') fail("expected a key in quotes");
    if (!kept) window_.keep();
    const std::string_view token = since(scan(true));
    key_ = text_value(token);
    if (!kept) window_.release();
    if (next() != ':') fail("expected a colon");
    skip_byte();
    next();
  }

  /// Reads the object at the cursor; `member` reads the value of key_. `kept`: the window keeps it all.
  template <class F>
  bool members(F member, bool kept = false) {
    skip_byte();
    if (next() == '}') return skip_byte(), true;
    for (;;) {
      key(kept);
      if (!member()) return false;
      const char c = next();
      if (c != ',' && c != '}') fail("expected a comma or a closing bracket");
      skip_byte();
      if (c == '}') return true;
    }
  }
  /// Reads the list at the cursor.
  template <class F>
  bool elements(F element) {
    skip_byte();
    if (next() == ']') return skip_byte(), true;
    for (;;) {
      next();
      if (!element()) return false;
      const char c = next();
      if (c != ',' && c != ']') fail("expected a comma or a closing bracket");
      skip_byte();
      if (c == ']') return true;
    }
  }

  bool top_member();
  bool resource();
  bool resource_member();
  bool instance();
  bool visit_waiting();
  void keep_waiting(const InstanceText& instance);
  void attributes();
  bool output() {
    const std::string name = key_;
    if (next() != '{') {
      scan_away();
      corrupt("outputs: '" + name + "' is not an object");
    }
    return to_.output(name, part());
  }
  std::string where() const { return "resources[" + std::to_string(seen_) + "]"; }
  /// Counts what is kept of a resource until its end: its members, and the instances that wait for them.
  void count_kept(std::uint64_t values) {
    kept_ += values;
    if (kept_ > kMaxPartValues) too_many_values(kMaxPartValues);
  }

  struct Part {
    std::string_view InstanceText::*part;
    std::uint64_t begin;
    std::size_t size;
  };
  struct Waiting {
    std::uint32_t size;
    AttributeTraits traits;
  };

  Window& window_;
  DocumentVisitor& to_;
  Outline* learned_;
  const Outline* known_;
  std::size_t next_known_ = 0;
  Scanner scanner_;
  std::string key_;
  AttributeTraits traits_;    ///< of the attributes that were read last
  std::uint64_t values_ = 0;  ///< of the instance
  std::uint64_t seen_ = 0, kept_ = 0;
  Resource resource_;
  bool has_mode_ = false, has_type_ = false, has_name_ = false;
  bool streamed_ = false;     ///< an instance of the resource was visited
  std::vector<Part> parts_;   ///< of the instance
  std::string waiting_text_;  ///< instances that came before what they are instances of
  std::vector<Waiting> waiting_;
};

bool Walk::top_member() {
  const char c = next();
  const bool object = c == '{', list = c == '[';
  if (key_ == "encrypted_data" && !to_.encrypted()) return false;
  if (key_ == "resources" && list) {
    return elements([this] {
      if (next() != '{') {
        scan_away();
        corrupt(where() + ": expected an object");
      }
      return resource();
    });
  }
  if (key_ == "outputs" && object) return members([this] { return output(); });
  if (key_ == "check_results" && list) return elements([this] { return to_.check(part()); });
  if ((object || list) && (key_ == "resources" || key_ == "outputs"))
    corrupt("the state file has an unexpected form: '" + key_ + "'");
  if (object || list || key_ == "encrypted_data") return scan_away(), true;
  const std::string name = key_;
  return to_.top(name, part());
}

bool Walk::resource() {
  resource_ = {};
  kept_ = 0;
  has_mode_ = has_type_ = has_name_ = streamed_ = false;
  if (!members([this] { return resource_member(); }) || !visit_waiting()) return false;
  ++seen_;
  return true;
}

bool Walk::resource_member() {
  const char c = next();
  if (key_ == "instances" && c == '{') corrupt(where() + ".instances: expected a list");
  if (key_ == "instances" && c == '[') {
    return elements([this] {
      if (next() != '{') {
        scan_away();
        corrupt(where() + ".instances: expected objects");
      }
      return instance();
    });
  }
  if (streamed_) corrupt(where() + ": '" + key_ + "' stands after 'instances'");
  const std::string name = key_;
  const std::string_view value = part();
  count_kept(scanner_.traits().values);
  has_mode_ = has_mode_ || name == "mode";
  has_type_ = has_type_ || name == "type";
  has_name_ = has_name_ || name == "name";
  for (const auto& [known, member] : {std::pair{"module", &Resource::module},
                                      {"mode", &Resource::mode},
                                      {"type", &Resource::type},
                                      {"name", &Resource::name},
                                      {"provider", &Resource::provider}}) {
    if (name == known) resource_.*member = text_value(value);
  }
  return true;
}

/// Reads the attributes at the cursor, or passes over them if a walk before this one knows their end.
void Walk::attributes() {
  if (known_ == nullptr || next_known_ == known_->size()) {
    const auto begin = scan(true);
    values_ += scanner_.traits().values;
    traits_ = traits_of(scanner_.traits());
    if (learned_ != nullptr) learned_->push_back({static_cast<std::uint32_t>(window_.offset() - begin), traits_});
    return;
  }
  const OutlineEntry& known = (*known_)[next_known_++];
  while (static_cast<std::size_t>(window_.end() - window_.at()) < known.size) {
    if (window_.last()) fail("");
    window_.more();
  }
  window_.move_to(window_.at() + known.size);
  traits_ = known.traits;
}

bool Walk::instance() {
  window_.keep();
  const std::uint64_t begin = window_.offset();
  parts_.clear();
  AttributeTraits typed, flat;
  values_ = 1;
  members(
      [&] {
        const std::uint64_t from = window_.offset();
        const auto part = part_of(key_);
        if (part == &InstanceText::attributes && *window_.at() == '{') {
          attributes();
          typed = traits_;
        } else {
          scan(part == &InstanceText::attributes_flat);
          values_ += scanner_.traits().values;
          if (part == &InstanceText::attributes_flat) flat = traits_of(scanner_.traits());
        }
        if (values_ > kMaxPartValues) too_many_values(kMaxPartValues);
        if (part != nullptr) parts_.push_back({part, from, static_cast<std::size_t>(window_.offset() - from)});
        return true;
      },
      true);
  InstanceText out;
  out.text = since(begin);
  for (const auto& [part, from, size] : parts_) out.*part = {window_.pointer(from), size};
  out.traits = out.attributes.starts_with('{') ? typed : flat;
  window_.release();
  streamed_ = has_mode_ && has_type_ && has_name_;
  if (streamed_) return to_.instance(resource_, out);
  keep_waiting(out);
  return true;
}

void Walk::keep_waiting(const InstanceText& instance) {
  count_kept(values_);
  waiting_.push_back({static_cast<std::uint32_t>(instance.text.size()), instance.traits});
  waiting_text_ += instance.text;
}

bool Walk::visit_waiting() {
  waiting_text_.append(kPadding, '\0');
  std::size_t at = 0;
  for (const auto& [size, traits] : std::exchange(waiting_, {})) {
    InstanceText one = split_instance(std::string_view(waiting_text_).substr(at, size));
    one.traits = traits;
    at += size;
    if (!to_.instance(resource_, one)) return false;
  }
  waiting_text_.clear();
  return true;
}

}  // namespace

AttributeTraits traits_of(const Traits& seen) {
  // the attributes stand inside of the instance
  return {seen.blanks, seen.unordered, seen.escaped_key, seen.deepest >= common::kMaxNesting, seen.secret_key};
}

void corrupt(const std::string& text) { throw sdk::Failure(DRIFTD_CORRUPT, text); }

void too_many_values(std::size_t max_values) {
  throw sdk::Failure(DRIFTD_BUDGET, "the state has an object of more than " + std::to_string(max_values) +
                                        " values, which is not read");
}

std::string text_value(std::string_view token) {
  if (token.size() < 2 || token.front() != '"') return {};
  const std::string_view plain = token.substr(1, token.size() - 2);
  std::string out;
  out.reserve(plain.size());
  for (std::size_t at = 0; at < plain.size();) {
    const auto escape = std::min(plain.find('\\', at), plain.size());
    out.append(plain, at, escape - at);
    if (escape == plain.size()) break;
    const char c = plain[escape + 1];
    if (c == 'u') return nlohmann::json::parse(token).get<std::string>();
    out += c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
    at = escape + 2;
  }
  return out;
}

std::string_view InstanceText::*part_of(std::string_view key) {
  if (key == "attributes") return &InstanceText::attributes;
  if (key == "sensitive_attributes") return &InstanceText::sensitive_attributes;
  if (key == "index_key") return &InstanceText::index_key;
  if (key == "deposed") return &InstanceText::deposed;
  if (key == "status") return &InstanceText::status;
  if (key == "attributes_flat") return &InstanceText::attributes_flat;
  return nullptr;
}

void walk(const Spool& state, DocumentVisitor& visitor, Outline& outline) {
  Window window(state);
  Walk(window, visitor, &outline, nullptr).run();
}

void walk_again(const Spool& state, DocumentVisitor& visitor, const Outline& outline) {
  Window window(state);
  Walk(window, visitor, nullptr, &outline).run();
}

void walk(std::string_view text, DocumentVisitor& visitor) {
  Window window(text);
  Walk(window, visitor, nullptr, nullptr).run();
}

}  // namespace driftd::terraform
