// SPDX-License-Identifier: Apache-2.0
// INI and XML texts as values.
#include <boost/property_tree/ini_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr int kMaxXmlDepth = 128;

/// `{"name": […], …}`: attributes as `@name`, text as `#text` (several pieces: a list), each element's children by
/// name, in order. Returns `budget` if the tree is too large.
class XmlReader {
 public:
  Result<Value> read(const pugi::xml_node& node, int depth) {
    if (depth > kMaxXmlDepth) return too_large("nesting deeper than " + std::to_string(kMaxXmlDepth));
    Value::Object out;
    Value::Array texts;  // pieces between elements
    for (const auto& attribute : node.attributes()) {
      DRIFTD_CHECK(count());
      const bool is_new =
          out.emplace("@" + std::string(attribute.name()), Value(std::string(attribute.value()))).second;
      if (!is_new) return fail(Code::invalid, std::string("the attribute ") + attribute.name() + " occurs twice");
    }
    for (const auto& child : node.children()) {
      DRIFTD_CHECK(count());
      if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) add_text(texts, child.value());
      if (child.type() != pugi::node_element) continue;
      DRIFTD_TRY(Value made, read(child, depth + 1));
      Value& same_name = out.try_emplace(child.name(), Value(Value::Array{})).first->second;
      same_name.array()->push_back(std::move(made));
    }
    if (out.empty() && texts.size() < 2) return texts.empty() ? Value(std::string()) : texts.front();
    if (!texts.empty()) out["#text"] = texts.size() == 1 ? texts.front() : Value(std::move(texts));
    return Value(std::move(out));
  }

 private:
  static void add_text(Value::Array& texts, std::string_view piece) {
    const std::string_view shown = strip(piece);
    if (!shown.empty()) texts.emplace_back(std::string(shown));
  }
  Status count() {
    return ++nodes_ > kMaxNodes ? Status(too_large("more than " + std::to_string(kMaxNodes) + " values")) : Status();
  }
  std::size_t nodes_ = 0;
};

}  // namespace

Result<Value> xml(std::string_view text) {
  if (text.size() > kMaxJson) return too_large("more than 2 MiB");
  if (text.find('\0') != std::string_view::npos || text.find("<!DOCTYPE") != std::string_view::npos)
    return fail(Code::invalid, "NUL and DOCTYPE are not read");
  pugi::xml_document document;
  const auto parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_fragment, pugi::encoding_utf8);
  if (!parsed)
    return fail(Code::invalid, std::string(parsed.description()) + " at byte " + std::to_string(parsed.offset));
  const auto root = document.document_element();
  for (const auto& node : document.children()) {
    const bool alone = node == root || node.type() == pugi::node_declaration;
    if (!alone) return fail(Code::invalid, "expected one element and nothing beside it");
  }
  DRIFTD_TRY(Value content, XmlReader().read(root, 0));
  return Value(Value::Object{{root.name(), std::move(content)}});
}

Result<Value> ini(std::string_view text) {
  if (text.size() > kMaxJson) return too_large("more than 2 MiB");
  boost::property_tree::ptree tree;
  try {
    std::istringstream in{std::string(text)};
    boost::property_tree::read_ini(in, tree);
  } catch (const boost::property_tree::ini_parser_error& error) {
    return fail(Code::invalid, error.message() + " in line " + std::to_string(error.line()));
  }
  Value::Object out;
  std::size_t lines = 0;
  for (const auto& [name, section] : tree) {
    if (section.empty()) out[name] = Value(section.data());
    if (!section.empty()) out[name] = Value(Value::Object{});
    for (const auto& [key, value] : section) {
      if (++lines > kMaxElements) return too_large("more than " + std::to_string(kMaxElements) + " lines");
      (*out[name].object())[key] = Value(value.data());
    }
  }
  return Value(std::move(out));
}

}  // namespace driftd::core::types
