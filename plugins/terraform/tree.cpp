// SPDX-License-Identifier: Apache-2.0
#include "terraform/tree.hpp"

#include <utility>

#include "common/bounded_json.hpp"
#include "driftd/sdk/types.hpp"
#include "terraform/document.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxWhole = 64ull << 20;
constexpr std::size_t kMostValues = 2'000'000;  // of one that is read as a whole, with flat attributes: about 200 MB

// Marks at the beginning of a string of the tree, of noncharacters: a raw number token, a text that itself begins with
// one of the three, and the place of what nests too deep. The second keeps a text that somebody chose from passing for
// another.
const std::string kRaw = "\xEF\xB7\x90", kText = "\xEF\xB7\x91", kDeep = "\xEF\xB7\x92";

bool is_marked(const std::string& text) {
  return text.starts_with(kRaw) || text.starts_with(kText) || text.starts_with(kDeep);
}

/// Builds a value from the parser's events.
class Builder {
 public:
  Builder(std::size_t deepest, std::size_t max_values) : deepest_(deepest), max_values_(max_values) {}
  void key(std::string& name) {
    if (deep_ == 0) key_ = is_marked(name) ? kText + name : std::move(name);
  }
  void value(json&& v) {
    if (deep_ > 0) return;
    put(std::move(v));
  }
  void open(json&& container) {
    if (open_.size() >= deepest_) {
      if (deep_++ == 0) put(kDeep);
      return;
    }
    open_.push_back(put(std::move(container)));
  }
  void close() {
    if (deep_ > 0) return static_cast<void>(--deep_);
    open_.pop_back();
  }
  json take() { return std::move(root_); }

 private:
  json* put(json&& v) {
    if (++values_ > max_values_) too_many_values(max_values_);
    if (open_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    json& slot = parent[key_];
    slot = std::move(v);
    return &slot;
  }

  std::size_t deepest_, max_values_, values_ = 0;  ///< a value takes up to fifty times its text
  json root_;
  std::vector<json*> open_;
  std::size_t deep_ = 0;  ///< containers that are open below the deepest one that is built
  std::string key_;
};

/// The parser's events as calls of a Builder.
class Events final : public nlohmann::json_sax<json> {
 public:
  explicit Events(Builder builder) : builder_(std::move(builder)) {}
  bool null() override { return scalar(nullptr); }
  bool boolean(bool v) override { return scalar(v); }
  bool number_integer(std::int64_t v) override { return scalar(v); }
  bool number_unsigned(std::uint64_t v) override { return scalar(v); }
  bool number_float(double, const std::string& token) override { return scalar(kRaw + token); }
  bool string(std::string& v) override { return scalar(is_marked(v) ? kText + v : std::move(v)); }
  bool binary(json::binary_t&) override { return false; }
  bool key(std::string& name) override { return builder_.key(name), true; }
  bool start_object(std::size_t) override { return builder_.open(json::object()), true; }
  bool start_array(std::size_t) override { return builder_.open(json::array()), true; }
  bool end_object() override { return builder_.close(), true; }
  bool end_array() override { return builder_.close(), true; }
  /// The texts were checked before, so this is a fault of ours.
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    throw sdk::Failure(DRIFTD_INTERNAL, "a part of the state was accepted and then could not be parsed");
  }
  json take() { return builder_.take(); }

 private:
  bool scalar(json v) { return builder_.value(std::move(v)), true; }

  Builder builder_;
};

}  // namespace

json parse_tree(std::string_view text, int deepest) {
  Events events(Builder(static_cast<std::size_t>(deepest), kMaxPartValues));
  json::sax_parse(text, &events);
  return events.take();
}

json parse_whole(const Spool& state) {
  if (state.size() > kMaxWhole) {
    throw sdk::Failure(DRIFTD_BUDGET, "a state of a format before v4 is read up to 64 MiB; this one has " +
                                          std::to_string(state.size()) + " bytes");
  }
  Events events(Builder(common::kMaxNesting, kMostValues));
  json::sax_parse(state.text(), &events);
  return events.take();
}

std::string render(const json& value) {
  const std::string text = common::json_text(value), begin = "\"\xEF\xB7";
  std::string out;
  std::size_t from = 0;
  for (auto at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    if (at > 0 && text[at - 1] == '\\') continue;  // a quote inside of a text
    const std::size_t token = at + 1 + kRaw.size();
    if (text.compare(at + 1, kRaw.size(), kRaw) == 0) {
      const std::size_t end = text.find('"', token);
      out.append(text, from, at - from).append(text, token, end - token);
      from = end + 1;
    } else if (text.compare(at + 1, kText.size(), kText) == 0) {
      out.append(text, from, at + 1 - from);
      from = token;
    }
  }
  return out.append(text, from);
}

bool may_hold_mark(std::string_view rendered) { return rendered.find(kDeep) != rendered.npos; }

std::vector<std::string> remove_deep_members(json& object, const std::string& rendered) {
  std::vector<std::string> out;
  if (!may_hold_mark(rendered)) return out;  // the usual case: nothing is rendered twice
  const auto is_deep = [mark = "\"" + kDeep + "\""](const json& value) {
    // Do not use the rendered text here: in it a text that looks like the mark has lost its own mark.
    const std::string text = common::json_text(value);
    auto at = text.find(mark);
    while (at != std::string::npos && at > 0 && text[at - 1] == '\\') at = text.find(mark, at + 1);
    return at != std::string::npos;
  };
  for (const auto& [name, value] : object.items()) {
    if (is_deep(value)) out.push_back(name);
  }
  for (const auto& name : out) object.erase(name);
  return out;
}

std::string scalar_text(const json& value) {
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string()) return {};
  const auto& text = value.get_ref<const std::string&>();
  return text.starts_with(kRaw) || text.starts_with(kText) ? text.substr(kRaw.size()) : text;
}

}  // namespace driftd::terraform
