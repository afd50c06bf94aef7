// SPDX-License-Identifier: Apache-2.0
#include "config/section.hpp"

#include <algorithm>
#include <charconv>

#include "config/secrets.hpp"
#include "config/units.hpp"

namespace driftd::config {
namespace {

std::string render(std::chrono::milliseconds value) {
  if (value.count() % 86'400'000 == 0) return std::to_string(value.count() / 86'400'000) + "d";
  if (value.count() % 3'600'000 == 0) return std::to_string(value.count() / 3'600'000) + "h";
  if (value.count() % 1000 == 0) return std::to_string(value.count() / 1000) + "s";
  return std::to_string(value.count()) + "ms";
}

}  // namespace

std::string one_of(const std::vector<std::string>& names) {
  std::string out = names.size() == 1 ? "" : "one of ";
  for (std::size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return out;
}

std::string suggest(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : "did you mean '" + near + "'?";
}

std::optional<std::string> plain_text(Report& report, const Node& node, std::string_view what,
                                      std::string_view expected) {
  if (node.kind != Node::Kind::scalar) {
    report.error(node.at, std::string(what) + " has the wrong type", std::string(expected), describe(node));
    return std::nullopt;
  }
  if (looks_like_reference(node.text)) {
    report.error(node.at, "a secret reference in " + std::string(what), "plain text", "",
                 "references are resolved in settings of backends and in sinks only");
    return std::nullopt;
  }
  return node.text;
}

Section::Section(Report& report, const Node* node, std::string path, std::string title)
    : report_(report),
      node_(node),
      path_(std::move(path)),
      title_(std::move(title)) {
  report_.known[path_];
  if (node_ == nullptr || node_->kind == Node::Kind::map) return;
  if (node_->kind != Node::Kind::null) {
    report_.error(node_->at, title_ + " has the wrong type", "a map of keys and values", describe(*node_));
  }
  node_ = nullptr;
}

const Node* Section::find(std::string_view key) {
  report_.known[path_].insert(std::string(key));
  const Node* found = node_ == nullptr ? nullptr : node_->find(key);
  return found == nullptr || found->kind == Node::Kind::null ? nullptr : found;
}

Section Section::section(std::string_view key) {
  const Node* node = find(key);
  const std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  const std::string title = path_.empty() ? "'" + std::string(key) + "'" : "'" + std::string(key) + "' of " + title_;
  return Section(report_, node, path, title);
}

Position Section::at(std::string_view key) const {
  const Node* found = node_ == nullptr ? nullptr : node_->find(key);
  return found == nullptr ? at() : found->at;
}

void Section::wrong(std::string_view key, const Node& node, std::string_view expected, std::string next) {
  report_.error(node.at, "'" + std::string(key) + "' of " + title_ + " is wrong", std::string(expected), describe(node),
                std::move(next));
}

std::string Section::text(std::string_view key, std::string fallback) {
  const Node* node = find(key);
  if (node == nullptr) return fallback;
  return plain_text(report_, *node, "'" + std::string(key) + "' of " + title_).value_or(std::move(fallback));
}

std::string Section::required_text(std::string_view key, std::string_view expected) {
  std::string found = text(key);
  const bool absent = find(key) == nullptr || (find(key)->kind == Node::Kind::scalar && found.empty() &&
                                               !looks_like_reference(find(key)->text));
  if (absent) report_.error(at(key), title_ + " has no '" + std::string(key) + "'", std::string(expected));
  return found;
}

std::string Section::choice(std::string_view key, std::string fallback, const std::vector<std::string>& allowed) {
  const Node* node = find(key);
  if (node == nullptr) return fallback;
  const bool known =
      node->kind == Node::Kind::scalar && std::find(allowed.begin(), allowed.end(), node->text) != allowed.end();
  if (known) return node->text;
  wrong(key, *node, one_of(allowed), suggest(node->text, allowed));
  return fallback;
}

bool Section::boolean(std::string_view key, bool fallback) {
  const Node* node = find(key);
  if (node == nullptr) return fallback;
  if (node->kind == Node::Kind::scalar && !node->quoted && (node->text == "true" || node->text == "false")) {
    return node->text == "true";
  }
  wrong(key, *node, "true or false");
  return fallback;
}

std::int64_t Section::integer(std::string_view key, std::int64_t fallback, std::int64_t lowest, std::int64_t highest) {
  const Node* node = find(key);
  if (node == nullptr) return fallback;
  std::int64_t value = 0;
  const char* end = node->text.data() + node->text.size();
  const bool number = node->kind == Node::Kind::scalar && !node->quoted && !node->text.empty() &&
                      std::from_chars(node->text.data(), end, value).ptr == end;
  if (number && value >= lowest && value <= highest) return value;
  wrong(key, *node, "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  return fallback;
}

std::int64_t Section::bytes(std::string_view key, std::int64_t fallback, std::int64_t lowest) {
  const Node* node = find(key);
  if (node == nullptr) return fallback;
  const auto value = node->kind == Node::Kind::scalar ? parse_bytes(node->text) : std::nullopt;
  if (!value) {
    wrong(key, *node, kBytesForm);
    return fallback;
  }
  if (*value >= lowest) return *value;
  wrong(key, *node, "at least " + std::to_string(lowest) + "B");
  return fallback;
}

std::chrono::milliseconds Section::duration(std::string_view key, std::chrono::milliseconds fallback,
                                            std::chrono::milliseconds lowest, std::chrono::milliseconds highest) {
  const Node* node = find(key);
  if (node == nullptr) return fallback;
  const auto value = node->kind == Node::Kind::scalar ? parse_duration(node->text) : std::nullopt;
  if (!value) {
    wrong(key, *node, kDurationForm);
    return fallback;
  }
  if (*value >= lowest && *value <= highest) return *value;
  wrong(key, *node, "from " + render(lowest) + " to " + render(highest));
  return fallback;
}

std::vector<const Node*> Section::items(std::string_view key) {
  std::vector<const Node*> out;
  const Node* node = find(key);
  if (node == nullptr) return out;
  if (node->kind != Node::Kind::list) {
    wrong(key, *node, "a list");
    return out;
  }
  for (const auto& item : node->items) out.push_back(&item);
  return out;
}

std::vector<std::string> Section::texts(std::string_view key) {
  std::vector<std::string> out;
  for (const Node* item : items(key)) {
    auto text = plain_text(report_, *item, "an item of '" + std::string(key) + "' of " + title_);
    if (text) out.push_back(std::move(*text));
  }
  return out;
}

std::map<std::string, std::string> Section::text_map(std::string_view key) {
  std::map<std::string, std::string> out;
  const Node* node = find(key);
  if (node == nullptr) return out;
  if (node->kind != Node::Kind::map) {
    wrong(key, *node, "a map of names to text");
    return out;
  }
  for (const auto& member : node->members) {
    auto text = plain_text(report_, member.value, "'" + member.key + "' in '" + std::string(key) + "' of " + title_);
    if (text) out[member.key] = std::move(*text);
  }
  return out;
}

void Section::close() {
  if (node_ == nullptr) return;
  const auto& asked = report_.known[path_];
  const std::vector<std::string> known(asked.begin(), asked.end());
  for (const auto& member : node_->members) {
    if (asked.contains(member.key)) continue;
    const std::string where = path_.empty() ? "" : " in " + title_;
    const std::string next = suggest(member.key, known);
    report_.error(member.at, "unknown key '" + member.key + "'" + where, next.empty() ? one_of(known) : "", "", next);
  }
}

void check_duplicates(Report& report, const Node& root) {
  std::map<std::string_view, Position> first;
  for (const auto& member : root.members) {
    const auto [entry, fresh] = first.emplace(member.key, member.at);
    if (!fresh) {
      report.error(member.at, "key '" + member.key + "' occurs twice", "each key once",
                   "the first at " + report.where(entry->second), "remove one of them");
    }
    check_duplicates(report, member.value);
  }
  for (const auto& item : root.items) check_duplicates(report, item);
}

}  // namespace driftd::config
