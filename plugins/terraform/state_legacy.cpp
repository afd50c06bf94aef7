// SPDX-License-Identifier: Apache-2.0
// States that Terraform before 0.12 wrote: v1 (0.3 to 0.6), v2 (0.6.15), v3 (0.7 to 0.11). Attributes are flat
// (`tags.%`, `tags.Name`), resources stand by name in modules. They are put into the form of v4.
#include "driftd/sdk/types.hpp"
#include "terraform/scanner.hpp"
#include "terraform/state.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

std::string module_of(const json& module) {
  std::string out;
  const json path = module.value("path", json::array());
  for (std::size_t i = 1; i < path.size(); ++i) {  // the first is `root`
    if (!path[i].is_string()) corrupt("modules: a path that is not a list of texts");
    out += (out.empty() ? "module." : ".module.") + path[i].get<std::string>();
  }
  return out;
}

/// An object of the state in the form of v4.
struct Object {  // NOLINT(bugprone-exception-escape): json's own move is declared noexcept
  Resource resource;
  json attributes;
  std::string index_key, deposed;  ///< a number; the place in its list, empty: the current object
  bool tainted = false;
};

/// `data.aws_ami.web.0` → mode, type, name, index_key.
Object parse_key(const std::string& key) {
  Object out;
  std::string rest = key;
  out.resource.mode = "managed";
  if (rest.rfind("data.", 0) == 0) {
    out.resource.mode = "data";
    rest.erase(0, 5);
  }
  const auto dot = rest.find('.');
  if (dot == std::string::npos) corrupt("modules: '" + key + "' is no resource address");
  out.resource.type = rest.substr(0, dot);
  std::string name = rest.substr(dot + 1);
  const auto index = name.rfind('.');
  if (index != std::string::npos && name.find_first_not_of("0123456789", index + 1) == std::string::npos) {
    out.index_key = std::to_string(std::stoull("0" + name.substr(index + 1).substr(0, 18)));
    name.erase(index);
  }
  out.resource.name = name;
  return out;
}

Object object_of(const std::string& key, const json& resource, const std::string& module, const json& was) {
  Object out = parse_key(key);
  out.resource.module = module;
  out.resource.provider = text_of(resource, "provider");
  out.attributes = was.value("attributes", json::object());
  if (!out.attributes.is_object()) corrupt(key + ": 'attributes' is not an object");
  if (!out.attributes.contains("id") && was.contains("id")) out.attributes["id"] = was["id"];
  out.tainted = was.value("tainted", json(false)) == json(true);
  return out;
}

/// Visits every object of the state: the current one, then the deposed ones (v1 had tainted ones instead).
template <class F>
void each_object(const json& document, F f) {
  const auto modules = document.find("modules");
  if (modules == document.end() || !modules->is_array()) corrupt("the state file has no 'modules' list");
  for (const auto& module : *modules) {
    const std::string path = module_of(module);
    const json resources = module.value("resources", json::object());
    for (const auto& [key, resource] : resources.items()) {
      if (const auto primary = resource.find("primary"); primary != resource.end() && primary->is_object()) {
        f(object_of(key, resource, path, *primary));
      }
      for (const char* list : {"deposed", "tainted"}) {
        const json others = resource.value(list, json::array());
        for (std::size_t i = 0; others.is_array() && i < others.size(); ++i) {
          if (!others[i].is_object()) continue;
          Object object = object_of(key, resource, path, others[i]);
          object.deposed = std::to_string(i);
          f(std::move(object));
        }
      }
    }
  }
}

/// Returns the text of a member of an instance: quoted unless it is empty.
std::string quoted(const std::string& text) { return text.empty() ? text : json(text).dump(); }

/// Calls `to` with the object as text.
bool visit(const Object& object, StateVisitor& to) {
  const std::string attributes = render(object.attributes) + std::string(kPadding, '\0');
  const std::string deposed = quoted(object.deposed), status = quoted(object.tainted ? "tainted" : "");
  InstanceText text;
  text.attributes_flat = std::string_view(attributes).substr(0, attributes.size() - kPadding);
  text.index_key = object.index_key;
  text.deposed = deposed;
  text.status = status;
  // Keys of a tree are sorted and stand once.
  text.traits.deep = may_hold_mark(text.attributes_flat);
  text.traits.escaped = text.attributes_flat.find('\\') != std::string_view::npos;
  text.traits.secret_key = true;  // each name is looked at
  return to.instance(Instance(object.resource, text, object.attributes));
}

bool is_data(const Object& object) { return object.resource.mode == "data"; }

}  // namespace

void legacy_head(const json& document, Head& out) {
  try {
    each_object(document, [&out](const Object& object) {
      if (is_data(object)) {
        ++out.data;
      } else {
        ++(!object.deposed.empty() ? out.deposed : out.managed);
      }
    });
  } catch (const json::exception&) {  // its text quotes the value
    corrupt("the state file has an unexpected form for version " + std::to_string(out.version));
  }
}

void legacy_contents(const json& document, StateVisitor& to) {
  bool wanted = true;
  each_object(document, [&](const Object& object) {
    if (!wanted || is_data(object)) return;
    wanted = visit(object, to);
  });
  for (const auto& module : document["modules"]) {  // outputs of the root module: v3 has {sensitive, type, value}
    if (!module_of(module).empty()) continue;
    const json outputs = module.value("outputs", json::object());
    for (const auto& [name, output] : outputs.items()) {
      const bool typed = output.is_object() && output.contains("value");
      wanted = wanted && to.output(name, typed ? output : json{{"value", output}});
    }
  }
}

}  // namespace driftd::terraform
