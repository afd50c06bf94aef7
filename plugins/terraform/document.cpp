// SPDX-License-Identifier: Apache-2.0
#include "terraform/document.hpp"

#include <istream>
#include <vector>

#include "common/bounded_json.hpp"
#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxWhole = 64ull << 20;
constexpr std::size_t kMostValues = 2'000'000;  // of one that is read as a whole, with flat attributes: about 200 MB
constexpr std::size_t kMaxOfOne = 1'000'000;    // of a resource, an instance, an output

// Marks at the beginning of a string of the tree, of noncharacters: a raw number token, a text that itself begins with
// one of the three, and the place of what nests too deep. The second keeps a text that somebody chose from passing for
// another.
const std::string kRaw = "\xEF\xB7\x90", kText = "\xEF\xB7\x91", kDeep = "\xEF\xB7\x92";

bool is_marked(const std::string& text) {
  return text.starts_with(kRaw) || text.starts_with(kText) || text.starts_with(kDeep);
}

[[noreturn]] void too_many_values(std::size_t max_values) {
  throw sdk::Failure(DRIFTD_BUDGET, "the state has an object of more than " + std::to_string(max_values) +
                                        " values, which is not read");
}

/// Builds a value from the parser's events.
class Builder {
 public:
  explicit Builder(std::size_t max_values) : max_values_(max_values) {}
  bool building() const { return building_; }
  void begin() {
    building_ = true;
    root_ = nullptr;
    open_.clear();
    deep_ = values_ = 0;
  }
  void key(std::string& name) {
    if (deep_ == 0) key_ = is_marked(name) ? kText + name : std::move(name);
  }
  void value(json&& v) {
    if (deep_ > 0) return;
    put(std::move(v));
    building_ = !open_.empty();
  }
  void open(json&& container) {
    if (open_.size() >= static_cast<std::size_t>(common::kMaxNesting)) {
      if (deep_++ == 0) put(kDeep);
      return;
    }
    open_.push_back(put(std::move(container)));
  }
  void close() {
    if (deep_ > 0) return static_cast<void>(--deep_);
    open_.pop_back();
    building_ = !open_.empty();
  }
  json take() { return std::move(root_); }
  std::size_t values() const { return values_; }  ///< of the one that was built last

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

  std::size_t max_values_, values_ = 0;  ///< a value takes up to fifty times its text
  bool building_ = false;
  json root_;
  std::vector<json*> open_;
  std::size_t deep_ = 0;  ///< containers that are open below the deepest one that is built
  std::string key_;
};

/// The parser's events as plain values and containers; a derived class decides what becomes of each.
class Events : public nlohmann::json_sax<json> {
 public:
  bool null() override { return scalar(nullptr); }
  bool boolean(bool v) override { return scalar(v); }
  bool number_integer(std::int64_t v) override { return scalar(v); }
  bool number_unsigned(std::uint64_t v) override { return scalar(v); }
  bool number_float(double, const std::string& token) override { return scalar(kRaw + token); }
  bool string(std::string& v) override { return scalar(is_marked(v) ? kText + v : std::move(v)); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    std::string text = e.what();  // "[…] parse error at line 1, column 2: why; last read: '<a part of the file>'; …"
    text = text.substr(0, text.find("; last read"));
    const auto at = text.find("parse error at ");
    corrupt("the state file is not valid JSON: " + (at == std::string::npos ? text : text.substr(at)));
  }

 protected:
  virtual bool scalar(json v) = 0;
  virtual bool open(json container) = 0;
  virtual bool close() = 0;
};

class Whole final : public Events {
 public:
  Whole() { builder_.begin(); }
  bool key(std::string& name) override { return builder_.key(name), true; }
  json take() { return builder_.take(); }

 protected:
  bool scalar(json v) override { return builder_.value(std::move(v)), true; }
  bool open(json container) override { return builder_.open(std::move(container)), true; }
  bool close() override { return builder_.close(), true; }

 private:
  Builder builder_{kMostValues};
};

/// State of the walk. Wanted parts are built, everything else is skipped.
enum class At { document, root, resources, resource, instances, outputs, checks };

class Walk final : public Events {
 public:
  explicit Walk(DocumentVisitor& to) : to_(to) {}

  bool key(std::string& name) override {
    if (skipped_ > 0) return true;
    if (builder_.building()) return builder_.key(name), true;
    key_.swap(name);
    return at() != At::root || key_ != "encrypted_data" || to_.encrypted();
  }

 protected:
  bool scalar(json v) override {
    if (skipped_ > 0) return true;
    if (builder_.building()) return builder_.value(std::move(v)), true;
    return piece(std::move(v));
  }
  bool open(json container) override {
    if (skipped_ > 0) return ++skipped_, true;
    if (builder_.building()) return builder_.open(std::move(container)), true;
    if (const At inner = below(container.is_object()); inner != At::document) {
      if (inner == At::resource) resource_ = json::object(), kept_ = 0;
      if (inner == At::instances)
        streaming_ = resource_.contains("mode") && resource_.contains("type") && resource_.contains("name");
      return path_.push_back(inner), true;
    }
    if (at() == At::root) return skipped_ = 1, true;
    builder_.begin();
    builder_.open(std::move(container));
    return true;
  }
  bool close() override {
    if (skipped_ > 0) return --skipped_, true;
    if (builder_.building()) {
      builder_.close();
      return builder_.building() || piece(builder_.take());
    }
    const At left = at();
    path_.pop_back();
    return left != At::resource || resource_ends();
  }

 private:
  At at() const { return path_.empty() ? At::document : path_.back(); }

  /// Returns the container that a member of this name or an element opens; At::document if the walk does not enter it.
  At below(bool object) const {
    switch (at()) {
      case At::document:
        if (!object || begun_) corrupt("the state file holds no JSON object");
        begun_ = true;
        return At::root;
      case At::root:
        if (key_ == "resources" && !object) return At::resources;
        if (key_ == "outputs" && object) return At::outputs;
        if (key_ == "check_results" && !object) return At::checks;
        if (key_ == "resources" || key_ == "outputs") corrupt("the state file has an unexpected form: '" + key_ + "'");
        return At::document;
      case At::resources:
        if (!object) corrupt(where() + ": expected an object");
        return At::resource;
      case At::resource:
        if (key_ == "instances" && object) corrupt(where() + ".instances: expected a list");
        return key_ == "instances" ? At::instances : At::document;
      default:
        return At::document;
    }
  }

  std::string where() const { return "resources[" + std::to_string(seen_) + "]"; }

  bool piece(json v) {
    switch (at()) {
      case At::document:
        corrupt("the state file holds no JSON object");
      case At::root:
        return to_.top(key_, v);
      case At::resources:
        corrupt(where() + ": expected an object");
      case At::resource:
        if (streamed_) corrupt(where() + ": '" + key_ + "' stands after 'instances'");
        keep(v);
        resource_[key_] = std::move(v);
        return true;
      case At::instances: {
        if (!v.is_object()) corrupt(where() + ".instances: expected objects");
        streamed_ = streaming_;
        if (streaming_) return to_.instance(resource_, v);
        keep(v);
        return waiting_.push_back(std::move(v)), true;  // 'instances' came before what they are instances of
      }
      case At::outputs:
        if (!v.is_object()) corrupt("outputs: '" + key_ + "' is not an object");
        return to_.output(key_, v);
      case At::checks:
        return to_.check(v);
    }
    return true;
  }

  /// Size of a resource in memory: its members, and the instances that wait for them.
  void keep(const json& v) {
    kept_ += v.is_structured() ? builder_.values() : 1;
    if (kept_ > kMaxOfOne) too_many_values(kMaxOfOne);
  }

  bool resource_ends() {
    for (const auto& instance : waiting_) {
      if (!to_.instance(resource_, instance)) return false;
    }
    waiting_.clear();
    streamed_ = false;
    ++seen_;
    return true;
  }

  DocumentVisitor& to_;
  std::vector<At> path_;
  std::string key_;
  Builder builder_{kMaxOfOne};
  std::size_t skipped_ = 0, seen_ = 0, kept_ = 0;
  mutable bool begun_ = false;
  bool streaming_ = false, streamed_ = false;
  json resource_;
  std::vector<json> waiting_;
};

}  // namespace

void corrupt(const std::string& text) { throw sdk::Failure(DRIFTD_CORRUPT, text); }

void walk(const Spool& state, DocumentVisitor& visitor) {
  Spool::Reader reader(state);
  std::istream stream(&reader);
  Walk sax(visitor);
  try {
    json::sax_parse(stream, &sax);
  } catch (const json::exception&) {  // its text quotes the value
    corrupt("the state file has an unexpected form");
  }
}

json parse_whole(const Spool& state) {
  if (state.size() > kMaxWhole) {
    throw sdk::Failure(DRIFTD_BUDGET, "a state of a format before v4 is read up to 64 MiB; this one has " +
                                          std::to_string(state.size()) + " bytes");
  }
  Spool::Reader reader(state);
  std::istream stream(&reader);
  Whole sax;
  json::sax_parse(stream, &sax);
  return sax.take();
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

std::vector<std::string> remove_deep_members(json& object, const std::string& rendered) {
  std::vector<std::string> out;
  if (rendered.find(kDeep) == std::string::npos) return out;  // the usual case: nothing is rendered twice
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
