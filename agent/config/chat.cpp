// SPDX-License-Identifier: Apache-2.0
// Reads the templates of chat messages.
#include "config/chat.hpp"

#include <algorithm>
#include <chat_generic_template.hpp>
#include <chat_slack_template.hpp>
#include <chat_teams_template.hpp>
#include <fstream>
#include <sstream>

#include "config/parts.hpp"
#include "config/secret_file.hpp"
#include "config/secrets.hpp"
#include "config/yaml.hpp"

namespace driftd::config {
namespace {

using sinks::ChatField;
using sinks::ChatFormat;
using sinks::ChatNode;
using sinks::kChatFields;

const std::vector<std::string> kFormats = {"events", "generic", "slack", "teams"};

const ChatField* find_field(std::string_view name) {
  const auto found =
      std::find_if(kChatFields.begin(), kChatFields.end(), [&](const auto& one) { return one.name == name; });
  return found == kChatFields.end() ? nullptr : &*found;
}

/// Compiles the tree of a template, and reports what is wrong with it.
class Compiler {
 public:
  explicit Compiler(Report& report) : report_(report) {}

  ChatNode node(const Node& from, std::string_view key) {
    ChatNode out;
    if (from.kind == Node::Kind::map) return map(from);
    if (from.kind == Node::Kind::list) {
      out.kind = ChatNode::Kind::list;
      for (const auto& one : from.items) out.items.push_back(item(one));
      return out;
    }
    core::Value value = to_value(from);
    if (value.string() == nullptr) {
      out.literal = std::move(value);
      return out;
    }
    return text(from, *value.string(), key);
  }

 private:
  void error(Position at, std::string what, std::string expected = "") {
    report_.error(at, std::move(what), std::move(expected));
  }

  bool is_open(std::string_view list) const {
    return list.empty() || std::find(open_.begin(), open_.end(), list) != open_.end();
  }

  std::vector<std::string> names(bool lists) const {
    std::vector<std::string> out;
    for (const auto& one : kChatFields) {
      if (one.list == lists && is_open(one.inside)) out.emplace_back(one.name);
    }
    return out;
  }

  /// Returns true if a text (or, with `list`, `$each`) may name this field here, and reports why not.
  bool check_field(const std::string& name, bool list, Position at) {
    const ChatField* field = find_field(name);
    if (field == nullptr) {
      const std::string meant = nearest(name, names(list));
      error(at, "there is no field '" + name + "'", meant.empty() ? one_of(names(list)) : "'" + meant + "'");
      return false;
    }
    if (!is_open(field->inside)) {
      error(at, "the field '" + name + "' exists only inside `$each: " + std::string(field->inside) + "`",
            one_of(names(list)));
      return false;
    }
    if (field->list == list) return true;
    error(at,
          list ? "'" + name + "' is a text and cannot be repeated" : "'" + name + "' is a list and cannot be a text",
          list ? one_of(names(true)) : "`$each: " + name + "`, and the fields of its elements");
    return false;
  }

  ChatNode text(const Node& from, std::string_view text, std::string_view key) {
    ChatNode out;
    out.kind = ChatNode::Kind::text;
    std::size_t done = 0;
    while (true) {
      const auto begin = text.find("{{", done);
      std::string literal(text.substr(done, begin == std::string_view::npos ? begin : begin - done));
      if (!literal.empty()) out.parts.push_back({false, std::move(literal)});
      if (begin == std::string_view::npos) break;
      const Position at = position(from, text, begin);
      const auto end = text.find("}}", begin);
      if (end == std::string_view::npos) {
        error(at, "`{{` has no `}}`", "{{ title }}");
        break;
      }
      std::string name(text.substr(begin + 2, end - begin - 2));
      std::erase(name, ' ');
      const bool known = check_field(name, false, at);
      if (known && key == "url" && name != "link.url") {
        error(at, "'" + name + "' comes from a watched system, which then would choose where a link leads",
              "'{{ link.url }}', or an address without a field");
      }
      if (known) out.parts.push_back({true, std::move(name)});
      done = end + 2;
    }
    if (out.parts.empty()) out.parts.push_back({});
    return out;
  }

  /// Returns where a byte of a scalar stands: exact on its first line unless escapes come before it.
  static Position position(const Node& node, std::string_view text, std::size_t byte) {
    if (text.substr(0, byte).find('\n') != std::string_view::npos) return node.at;
    return {node.at.line, node.at.column + static_cast<int>(byte) + (node.quoted ? 1 : 0)};
  }

  ChatNode map(const Node& from) {
    ChatNode out;
    out.kind = ChatNode::Kind::map;
    for (const auto& member : from.members) {
      if (member.key == "$each" || member.key == "$if" || member.key == "$do") {
        error(member.at, "'" + member.key + "' is only used in an item of a list");
        continue;
      }
      if (member.key.starts_with('$') && member.key != "$schema") {
        error(member.at, "'" + member.key + "' means nothing in a template", "$each, $if or $do");
      }
      if (std::any_of(out.members.begin(), out.members.end(),
                      [&](const auto& one) { return one.first == member.key; })) {
        error(member.at, "'" + member.key + "' stands twice in one map");
      }
      out.members.emplace_back(member.key, node(member.value, member.key));
    }
    return out;
  }

  std::string name_of_list(const Node& item) {
    const Node* each = item.find("$each");
    if (each == nullptr) return {};
    if (each->kind == Node::Kind::scalar && check_field(each->text, true, each->at)) return each->text;
    if (each->kind != Node::Kind::scalar) error(each->at, "'$each' must name a list", one_of(names(true)));
    return {};
  }

  std::string condition_of(const Node& item) {
    const Node* only = item.find("$if");
    if (only == nullptr) return {};
    const ChatField* field = only->kind == Node::Kind::scalar ? find_field(only->text) : nullptr;
    if (field != nullptr && is_open(field->inside)) return only->text;
    error(only->at, "'$if' must name a field that exists here", one_of(names(false)));
    return {};
  }

  ChatNode item(const Node& from) {
    if (from.kind != Node::Kind::map) return node(from, {});
    const std::string each = name_of_list(from);
    if (!each.empty()) open_.push_back(each);
    const std::string only_if = condition_of(from);
    Node rest = from;
    std::erase_if(rest.members, [](const auto& one) { return one.key == "$each" || one.key == "$if"; });
    ChatNode out;
    const Node* several = rest.find("$do");
    if (several == nullptr) {
      out = map(rest);
    } else {
      if (several->kind != Node::Kind::list || rest.members.size() != 1) {
        error(several->at, "'$do' must be a list, and the only key beside '$each' and '$if'");
      }
      out = node(*several, {});
      out.several = out.kind == ChatNode::Kind::list;
    }
    out.each = each;
    out.only_if = only_if;
    if (!each.empty()) open_.pop_back();
    return out;
  }

  Report& report_;
  std::vector<std::string> open_;  ///< the lists whose elements are repeated here
};

/// Returns the text of a template's file. Reports why it cannot be read. Never waits for a writer.
std::string read_template(Report& report, Position at, const std::string& path) {
  const std::filesystem::path file = beside_config(report, path);
  const auto mark = mark_of(file);
  if (!mark || !mark->regular) {
    report.error(at, "the template " + file.string() + (mark ? " is not a regular file" : " cannot be read"),
                 "a file with YAML or JSON; `driftd test --show-template` prints the built-in one");
    return {};
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) report.error(at, "the template " + file.string() + " cannot be read");
  return std::move(text).str();
}

ChatNode layout_of_file(Report& report, Position at, const std::string& path) {
  const std::size_t before = report.errors.size();
  const std::string text = read_template(report, at, path);
  if (report.errors.size() != before) return {};
  Report own{beside_config(report, path), {}, {}, {}, {}};
  ChatNode out = parse_chat_template(own, text);
  report.errors.insert(report.errors.end(), own.errors.begin(), own.errors.end());
  return out;
}

}  // namespace

sinks::ChatNode parse_chat_template(Report& report, std::string_view text) {
  const auto parsed = parse_yaml(text, report.file);
  if (!parsed) {
    report.errors.insert(report.errors.end(), parsed.error().begin(), parsed.error().end());
    return {};
  }
  if (parsed->kind != Node::Kind::map) {
    report.error(parsed->at, "the template is not a map", "a JSON object, or the same as YAML");
    return {};
  }
  return Compiler(report).node(*parsed, {});
}

std::string_view builtin_chat_template(ChatFormat format) {
  if (format == ChatFormat::slack) return chat_slack_template;
  if (format == ChatFormat::teams) return chat_teams_template;
  return format == ChatFormat::generic ? chat_generic_template : std::string_view();
}

ChatFormat chat_format(std::string_view name) {
  if (name == "slack") return ChatFormat::slack;
  if (name == "teams") return ChatFormat::teams;
  return name == "generic" ? ChatFormat::generic : ChatFormat::none;
}

sinks::ChatSettings chat_settings(Report& report, ChatFormat format, const std::string& template_file) {
  sinks::ChatSettings out;
  out.format = format;
  if (format == ChatFormat::none) return out;
  if (!template_file.empty()) {
    out.layout = layout_of_file(report, {}, template_file);
    return out;
  }
  Report builtin{"the built-in template", {}, {}, {}, {}};
  out.layout = parse_chat_template(builtin, builtin_chat_template(format));
  report.errors.insert(report.errors.end(), builtin.errors.begin(), builtin.errors.end());
  return out;
}

sinks::ChatSettings read_chat(Section& sink) {
  sinks::ChatSettings out;
  const std::string format = sink.choice("format", "events", kFormats);
  const std::string file = sink.text("template");
  out.format = chat_format(format);
  if (out.format == ChatFormat::none) {
    if (!file.empty()) {
      sink.report().error(sink.at("template"), "'template' of " + sink.title() + " is only used with a 'format'",
                          one_of({kFormats.begin() + 1, kFormats.end()}));
    }
    return out;
  }
  if (file.empty()) return chat_settings(sink.report(), out.format, file);
  out.layout = layout_of_file(sink.report(), sink.at("template"), file);
  return out;
}

}  // namespace driftd::config
