// SPDX-License-Identifier: Apache-2.0
#include "k8s/openapi.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "common/bounded_json.hpp"
#include "driftd/sdk/types.hpp"
#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMaxKept = 400'000;  // values of the reduced document
constexpr const char* kRef = "#/components/schemas/";

/// Builds the document without what says nothing about lists. A property may have any of those names, too.
class Reduced final : public common::BoundedBuild {
 public:
  Reduced() : BoundedBuild(common::kMaxNesting, kMaxKept) {}
  bool key(std::string& name) override {
    text_is_needed_ = name != "description" && name != "pattern" && name != "format";
    return BoundedBuild::key(name);
  }
  bool string(std::string& v) override { return text_is_needed_ ? BoundedBuild::string(v) : true; }

 protected:
  bool keeps(const std::vector<std::string>& path, const std::string& name) const override {
    if (!path.empty() && path.back() == "properties") return true;
    static constexpr std::array kNeedless = {"paths", "enum",    "required", "x-kubernetes-validations",
                                             "not",   "example", "default",  "securitySchemes"};
    return std::find(kNeedless.begin(), kNeedless.end(), name) == kNeedless.end();
  }

 private:
  bool text_is_needed_ = true;
};

/// Collects the types of a document that lead to lists with a meaning.
class Collector {
 public:
  explicit Collector(const json& schemas) : schemas_(schemas) {}

  /// Adds a type of the document with all that it refers to.
  void add(const std::string& name) {
    if (types_.contains(name)) return;
    types_[name] = json::object();
    fill(name, find(schemas_, {name.c_str()}));
  }
  /// Returns the collected types, without those that lead to no such list.
  json take() {
    while (drop_needless()) {
    }
    return std::move(types_);
  }

 private:
  void fill(const std::string& type, const json& schema) {
    json fields = json::object();
    const json& properties = find(schema, {"properties"});
    if (properties.is_object()) {
      for (const auto& [name, property] : properties.items()) fields[name] = field_of(property, type + "." + name);
    }
    const json& others = find(schema, {"additionalProperties"});
    if (others.is_object()) fields["*"] = field_of(others, type + ".*");
    types_[type] = std::move(fields);
  }

  /// `name` is the name of the value's type, should it have none of its own.
  json field_of(const json& schema, const std::string& name) {
    json out = json::object();
    const json& items = find(schema, {"items"});
    const std::string of = type_of(items.is_object() ? items : schema, name);
    if (!of.empty()) out["of"] = of;
    const std::string list = text(schema, {"x-kubernetes-list-type"});
    const json& keys = find(schema, {"x-kubernetes-list-map-keys"});
    const std::string merge_key = text(schema, {"x-kubernetes-patch-merge-key"});
    if (list == "set") out["set"] = true;
    if (list == "map" && keys.is_array()) out["keys"] = keys;
    if (list.empty() && items.is_object() && !merge_key.empty()) out["keys"] = json::array({merge_key});
    return out;
  }

  /// Returns the type of a value; empty if it has no members.
  std::string type_of(const json& schema, const std::string& name) {
    const json& all = list(schema, {"allOf"});
    const std::string own = text(schema, {"$ref"}), first = all.empty() ? std::string() : text(all[0], {"$ref"});
    const std::string& ref = own.empty() ? first : own;
    if (ref.starts_with(kRef)) {
      const std::string target = ref.substr(std::string_view(kRef).size());
      return add(target), target;
    }
    if (!find(schema, {"properties"}).is_object() && !find(schema, {"additionalProperties"}).is_object()) return {};
    return fill(name, schema), name;
  }

  /// Returns true if something was dropped, so that more may have become needless.
  bool drop_needless() {
    bool dropped = false;
    for (auto& [name, fields] : types_.items()) {
      for (auto field = fields.begin(); field != fields.end();) {
        const auto of = field->find("of");
        if (of != field->end() && !types_.contains(of->get<std::string>())) field->erase(of);
        dropped = dropped || field->empty();
        field = field->empty() ? fields.erase(field) : std::next(field);
      }
    }
    for (auto type = types_.begin(); type != types_.end();) {
      dropped = dropped || type->empty();
      type = type->empty() ? types_.erase(type) : std::next(type);
    }
    return drop_circles() || dropped;
  }

  /// Types that refer to each other, and to no list with a meaning, would keep each other.
  bool drop_circles() {
    json useful = json::object();
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& [name, fields] : types_.items()) {
        if (useful.contains(name)) continue;
        for (const auto& field : fields) {
          const bool leads = field.contains("keys") || field.contains("set") ||
                             (field.contains("of") && useful.contains(field.at("of").get<std::string>()));
          if (leads) useful[name] = true, grew = true;
        }
      }
    }
    const std::size_t before = types_.size();
    for (auto type = types_.begin(); type != types_.end();)
      type = useful.contains(type.key()) ? std::next(type) : types_.erase(type);
    return types_.size() != before;
  }

  const json& schemas_;
  json types_ = json::object();
};

}  // namespace

json parse_openapi(std::string_view text) {
  if (text.size() > kMaxOpenApi) throw sdk::Failure(DRIFTD_BUDGET, "the document has more than 8 MiB");
  if (common::shape_of(text).deepest > common::kMaxNesting)
    throw sdk::Failure(DRIFTD_BUDGET,
                       "the document nests deeper than " + std::to_string(common::kMaxNesting) + " levels");
  Reduced build;
  if (!json::sax_parse(text, &build)) throw sdk::Failure(DRIFTD_CORRUPT, "the document is not valid JSON");
  json out = build.take();
  if (!find(out, {"components", "schemas"}).is_object())
    throw sdk::Failure(DRIFTD_CORRUPT, "the document has no components.schemas");
  if (common::values_in(out) >= kMaxKept)
    throw sdk::Failure(DRIFTD_BUDGET, "the document holds more than " + std::to_string(kMaxKept) + " values");
  return out;
}

std::string type_name(const json& document, const ApiKind& kind) {
  const json wanted = {{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}};
  for (const auto& [name, schema] : find(document, {"components", "schemas"}).items()) {
    const json& kinds = list(schema, {"x-kubernetes-group-version-kind"});
    if (kinds.size() == 1 && kinds[0] == wanted) return name;
  }
  return {};
}

json list_types_of(const json& document, const std::vector<std::string>& types) {
  Collector collector(find(document, {"components", "schemas"}));
  for (const auto& type : types) collector.add(type);
  return collector.take();
}

}  // namespace driftd::k8s
