// SPDX-License-Identifier: Apache-2.0
// States that Terraform before 0.12 wrote: v1 (0.3 to 0.6), v2 (0.6.15), v3 (0.7 to 0.11). Attributes are flat
// (`tags.%`, `tags.Name`), resources stand by name in modules. They are put into the form of v4.
#include "driftd/sdk/types.hpp"
#include "terraform/document.hpp"
#include "terraform/state.hpp"

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

/// `data.aws_ami.web.0` → mode, type, name, index_key.
json resource_of(const std::string& key, const std::string& module, json& index_key) {
  std::string rest = key;
  json out = {{"mode", "managed"}, {"module", module}};
  if (rest.rfind("data.", 0) == 0) {
    out["mode"] = "data";
    rest.erase(0, 5);
  }
  const auto dot = rest.find('.');
  if (dot == std::string::npos) corrupt("modules: '" + key + "' is no resource address");
  out["type"] = rest.substr(0, dot);
  std::string name = rest.substr(dot + 1);
  const auto index = name.rfind('.');
  if (index != std::string::npos && name.find_first_not_of("0123456789", index + 1) == std::string::npos) {
    index_key = std::stoull("0" + name.substr(index + 1).substr(0, 18));
    name.erase(index);
  }
  out["name"] = name;
  return out;
}

struct Object {  // NOLINT(bugprone-exception-escape): json's own move is declared noexcept
  json resource, instance;
};

Object object_of(const std::string& key, const json& resource, const std::string& module, const json& was) {
  Object out;
  out.instance = json::object();
  json index_key;
  out.resource = resource_of(key, module, index_key);
  out.resource["provider"] = text_of(resource, "provider");
  if (!index_key.is_null()) out.instance["index_key"] = index_key;
  json attributes = was.value("attributes", json::object());
  if (!attributes.is_object()) corrupt(key + ": 'attributes' is not an object");
  if (!attributes.contains("id") && was.contains("id")) attributes["id"] = was["id"];
  out.instance["attributes_flat"] = std::move(attributes);
  if (was.value("tainted", json(false)) == json(true)) out.instance["status"] = "tainted";
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
          object.instance["deposed"] = std::to_string(i);
          f(std::move(object));
        }
      }
    }
  }
}

std::string address(const Object& object) {
  const std::string module = text_of(object.resource, "module");
  std::string out =
      (module.empty() ? "" : module + ".") + text_of(object.resource, "type") + "." + text_of(object.resource, "name");
  if (object.instance.contains("index_key")) out += "[" + object.instance["index_key"].dump() + "]";
  return out;
}

bool is_data(const Object& object) { return object.resource["mode"] == "data"; }

}  // namespace

void legacy_head(const json& document, Head& out) {
  try {
    each_object(document, [&out](const Object& object) {
      if (is_data(object)) {
        ++out.data;
      } else {
        ++(object.instance.contains("deposed") ? out.deposed : out.managed);
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
    wanted = to.instance({object.resource, object.instance, object.instance["attributes_flat"],
                          text_of(object.resource, "type"), address(object), text_of(object.instance, "deposed")});
  });
  for (const auto& module : document["modules"]) {  // outputs of the root module: v3 has {sensitive, type, value}
    if (!module_of(module).empty()) continue;
    const json outputs = module.value("outputs", json::object());
    for (const auto& [name, output] : outputs.items()) {
      wanted =
          wanted && to.output(name, output.is_object() && output.contains("value") ? output : json{{"value", output}});
    }
  }
}

}  // namespace driftd::terraform
