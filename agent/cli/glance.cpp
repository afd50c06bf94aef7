// SPDX-License-Identifier: Apache-2.0
#include "cli/glance.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <dtl/dtl.hpp>
#include <map>

#include "base/escape.hpp"
#include "cli/glance_list.hpp"
#include "core/value/schema.hpp"

namespace driftd::cli {
namespace {

using core::Value;

constexpr std::size_t kMaxTextLines = 20'000;  ///< of a text that is compared line by line

std::string short_form(const Value& value, std::size_t width) {
  std::string text = core::render(value);
  if (text.size() <= width) return text;
  if (const auto* object = value.object()) {
    std::string names;
    for (const auto& [name, member] : *object) names += (names.empty() ? "" : ", ") + name;
    return "{" + std::to_string(object->size()) + " members: " + short_text(names, width > 24 ? width - 16 : 8) + "}";
  }
  if (const auto* array = value.array()) return "[" + std::to_string(array->size()) + " elements]";
  return short_text(text, width);
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t out = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && at == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

std::optional<Value> parsed_structure(const std::string& text) {
  if (text.empty() || (text.front() != '{' && text.front() != '[')) return std::nullopt;
  auto value = core::parse(text);
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

class Glance {
 public:
  Glance(const GlanceOptions& options, std::string name) : options_(options), name_(std::move(name)) {}

  void compare(const std::string& path, const Value* before, const Value* after) {
    if (before == nullptr && after == nullptr) return;
    if (before != nullptr && after != nullptr && *before == *after) return;
    if (before == nullptr || after == nullptr) {
      const Value& only = before == nullptr ? *after : *before;
      return add(before == nullptr ? '+' : '-', path, short_form(only, room(path)) + for_people(path, only));
    }
    if (before->object() && after->object()) return objects(path, *before, *after);
    if (before->array() && after->array()) return lists(path, *before->array(), *after->array());
    if (before->string() && after->string()) return texts(path, *before->string(), *after->string());
    scalars(path, *before, *after);
  }

  std::vector<GlanceLine> take() {
    if (lines_.size() > options_.lines) {
      const auto left = lines_.size() - options_.lines + 1;
      lines_.resize(options_.lines - 1);
      lines_.push_back({' ', "… and " + std::to_string(left) + " more lines"});
    }
    return std::move(lines_);
  }

 private:
  std::size_t room(const std::string& path) const {
    const std::size_t used = path.size() + 4;
    return options_.width > used + 16 ? options_.width - used : 16;
  }
  void add(char sign, const std::string& path, const std::string& text) {
    lines_.push_back({sign, path.empty() ? text : path + ": " + text});
  }

  /// An element, and before it what happened to it. One that does not fit into the line goes on in up to three more,
  /// which begin behind its commas; a larger one is named by its members.
  void add_element(char sign, const std::string& path, const std::string& what, const Value& element) {
    const std::size_t width = room(path);
    const std::string whole = core::render(element);
    const auto parts = at_commas(whole, width);
    if (what.size() + whole.size() <= width || parts.empty())
      return add(sign, path, what + short_form(element, width - std::min(what.size(), width - 16)));
    if (!what.empty()) add(sign, path, what);
    if (what.empty()) add(sign, path, parts.front());
    for (std::size_t i = what.empty() ? 1 : 0; i < parts.size(); ++i) lines_.push_back({' ', parts[i]});
  }

  /// Returns the text in at most three parts of at most `width` bytes; empty if that is not possible.
  static std::vector<std::string> at_commas(const std::string& whole, std::size_t width) {
    constexpr std::size_t kMaxParts = 3;
    std::vector<std::string> out;
    for (std::size_t at = 0; at < whole.size();) {
      const bool rest = whole.size() - at <= width;
      const std::size_t comma = whole.rfind(',', at + width - 1);
      if (out.size() == kMaxParts || (!rest && (comma == std::string::npos || comma < at))) return {};
      const std::size_t end = rest ? whole.size() : comma + 1;
      out.push_back(whole.substr(at, end - at));
      at = end;
    }
    return out;
  }

  void objects(const std::string& path, const Value& before, const Value& after) {
    std::map<std::string, bool> names;
    for (const auto& [name, member] : *before.object()) names[name] = true;
    for (const auto& [name, member] : *after.object()) names[name] = true;
    for (const auto& [name, unused] : names) {
      compare(path + (path.empty() ? "" : ".") + name, before.find(name), after.find(name));
    }
  }

  void lists(const std::string& path, const Value::Array& before, const Value::Array& after) {
    const ListDifference found = difference(before, after);
    for (const auto& [left, right] : found.changed) {
      const std::string at = path + "[" + std::to_string(left) + "]";
      if (const std::string name = element_name(before[left], after[right]); !name.empty())
        add(' ', at, short_text(name, room(at)));
      compare(at, &before[left], &after[right]);
    }
    for (const auto at : found.removed) add_element('-', path, {}, before[at]);
    for (const auto at : found.added) add_element('+', path, {}, after[at]);
    for (const auto& [left, right] : found.moved) {
      const std::string what =
          "moved from place " + std::to_string(left + 1) + " to " + std::to_string(right + 1) + ": ";
      add_element('~', path, what, before[left]);
    }
    if (found.another_order) add('~', path, "the same elements in another order");
  }

  void texts(const std::string& path, const std::string& before, const std::string& after) {
    const auto left = parsed_structure(before), right = parsed_structure(after);
    if (left && right && *left != *right) return compare(path, &*left, &*right);
    const bool many = before.find('\n') != std::string::npos || after.find('\n') != std::string::npos;
    const auto lines = std::count(before.begin(), before.end(), '\n') + std::count(after.begin(), after.end(), '\n');
    if (many && static_cast<std::size_t>(lines) < kMaxTextLines) return unified(path, before, after);
    scalars(path, Value(before), Value(after));
  }

  void unified(const std::string& path, const std::string& before, const std::string& after) {
    auto left = lines_of(before), right = lines_of(after);
    if (left.back().empty() && right.back().empty()) left.pop_back(), right.pop_back();  // both end with a line end
    dtl::Diff<std::string> diff(left, right);
    diff.compose();
    diff.composeUnifiedHunks();
    for (const auto& hunk : diff.getUniHunks()) {
      const auto& shared = hunk.common[0];
      const auto line = static_cast<std::size_t>(hunk.a) + (shared.empty() ? 0 : shared.size() - 1);
      lines_.push_back({' ', (path.empty() ? "" : path + " ") + "@@ line " + std::to_string(line) + " @@"});
      if (!shared.empty()) lines_.push_back({' ', short_text(shared.back().first, options_.width - 4)});
      for (const auto& [text, info] : hunk.change) {
        const char sign = info.type == dtl::SES_ADD ? '+' : info.type == dtl::SES_DELETE ? '-' : ' ';
        lines_.push_back({sign, short_text(text, options_.width - 4)});
      }
    }
    if (diff.getUniHunks().empty()) add('~', path, "differs in line ends or invisible characters");
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find('\n', at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }

  void scalars(const std::string& path, const Value& before, const Value& after) {
    const std::string left = core::render(before) + for_people(path, before);
    const std::string right = core::render(after) + for_people(path, after);
    if (left.size() + right.size() + 3 <= room(path)) return add('~', path, left + " → " + right);
    const auto [was, is] = around_difference(core::render(before), core::render(after), room(path));
    add('-', path, was);
    add('+', path, is);
  }

  /// ` (4 MiB)`, or nothing.
  std::string for_people(const std::string& path, const Value& value) const {
    const auto plain = value.number() ? whole(value.number()->token) : std::nullopt;
    std::string out;
    if (options_.rule != nullptr && path.empty()) {
      const bool bytes = options_.rule->type == core::ValueType::bytes;
      if (!bytes && options_.rule->type != core::ValueType::duration) return {};
      const auto normal = core::normalise(*options_.rule, value);
      const auto count = normal ? whole(*normal) : std::nullopt;
      if (count) out = bytes ? bytes_for_people(*count) : duration_for_people(*count);
      if (out == (value.string() ? *value.string() : "")) return {};
    } else if (const auto text = value.string() ? whole(*value.string()) : plain) {
      out = by_name(path.empty() ? name_ : path, *text);
    }
    return out.empty() ? "" : " (" + out + ")";
  }

  static std::string by_name(std::string_view name, std::int64_t count) {
    if (name.ends_with("\"]")) name.remove_suffix(2);
    const auto last = name.substr(name.find_last_of("._-\"") + 1);
    const auto scaled = [&](std::int64_t unit) {
      std::int64_t ns = 0;
      return __builtin_mul_overflow(count, unit, &ns) ? std::string() : duration_for_people(ns);
    };
    if (last == "bytes") return bytes_for_people(count);
    if (last == "ms" || last == "millis") return scaled(1'000'000);
    if (last == "seconds" || last == "secs") return scaled(1'000'000'000);
    return {};
  }

  const GlanceOptions& options_;
  std::string name_;
  std::vector<GlanceLine> lines_;
};

struct Step {
  std::int64_t size;
  std::string_view name;
};

}  // namespace

std::string bytes_for_people(std::int64_t bytes) {
  static constexpr std::array<Step, 4> kUnits = {
      {{std::int64_t{1} << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}}};
  for (const auto& [size, name] : kUnits) {
    if (bytes >= size && bytes % size == 0) return std::to_string(bytes / size) + " " + std::string(name);
  }
  return {};
}

std::string duration_for_people(std::int64_t ns) {
  static constexpr std::array<Step, 5> kUnits = {{{86'400'000'000'000, "d"},
                                                  {3'600'000'000'000, "h"},
                                                  {60'000'000'000, "min"},
                                                  {1'000'000'000, "s"},
                                                  {1'000'000, "ms"}}};
  std::string out;
  for (const auto& [size, name] : kUnits) {
    if (ns < size) continue;
    out += (out.empty() ? "" : " ") + std::to_string(ns / size) + " " + std::string(name);
    ns %= size;
  }
  return ns == 0 ? out : std::string();
}

std::vector<GlanceLine> glance(const std::optional<Value>& before, const std::optional<Value>& after,
                               const std::string& name, const GlanceOptions& options) {
  Glance out(options, name);
  out.compare("", before ? &*before : nullptr, after ? &*after : nullptr);
  return out.take();
}

}  // namespace driftd::cli
