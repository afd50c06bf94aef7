// SPDX-License-Identifier: Apache-2.0
#include "k8s/object_patch.hpp"

#include <algorithm>
#include <set>

namespace driftd::k8s {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

constexpr std::size_t kRecognised = 8;  // bytes: a shorter text occurs by chance

/// What tells the elements of a list apart, in their order: the values of their keys.
std::vector<json> labels_by(const json& list, const std::vector<std::string>& keys) {
  std::vector<json> out;
  for (const auto& element : list) {
    json label = json::array();
    for (const auto& key : keys) label.push_back(element.is_object() ? element.value(key, json()) : json());
    out.push_back(std::move(label));
  }
  return out;
}

bool are_unique(const std::vector<json>& labels) {
  const bool whole = std::none_of(labels.begin(), labels.end(), [](const json& label) {
    return label.empty() || std::any_of(label.begin(), label.end(), [](const json& key) { return key.is_null(); });
  });
  return whole && std::set<json>(labels.begin(), labels.end()).size() == labels.size();
}

/// The elements of the list that is, in the order that the operations have brought about so far.
struct Element {
  json label;
  const json* value;  ///< null if it was added
};

/// Gives elements that have no equal the label of the one they become, if there are as many on both sides.
void pair_the_rest(std::vector<Element>& now, const std::vector<json>& wanted) {
  std::vector<json> rest = wanted;
  std::vector<Element*> alone;
  for (auto& element : now) {
    const auto at = std::find(rest.begin(), rest.end(), element.label);
    if (at != rest.end())
      rest.erase(at);
    else
      alone.push_back(&element);
  }
  const bool entered =
      alone.size() == rest.size() &&
      std::all_of(alone.begin(), alone.end(), [](const auto* one) { return one->label.is_object(); }) &&
      std::all_of(rest.begin(), rest.end(), [](const json& one) { return one.is_object(); });
  for (std::size_t i = 0; entered && i < alone.size(); ++i) alone[i]->label = rest[i];
}

class Changes {
 public:
  void add(const json& now, const json& wanted, const ListShape& shape, const Pointer& at) {
    if (now == wanted) return;
    if (now.is_object() && wanted.is_object()) return add_members(now, wanted, shape, at);
    if (now.is_array() && wanted.is_array()) return add_elements(now, wanted, shape, at);
    operation("replace", at)["value"] = wanted;
  }
  json take() { return std::move(out_); }

 private:
  json& operation(const char* name, const Pointer& at) {
    out_.push_back({{"op", name}, {"path", at.to_string()}});
    return out_.back();
  }

  void add_members(const json& now, const json& wanted, const ListShape& shape, const Pointer& at) {
    for (const auto& [name, member] : now.items()) {
      if (wanted.contains(name))
        add(member, wanted[name], shape.member(name), at / name);
      else
        operation("remove", at / name);
    }
    for (const auto& [name, member] : wanted.items()) {
      if (!now.contains(name)) operation("add", at / name)["value"] = member;
    }
  }

  void add_elements(const json& now, const json& wanted, const ListShape& shape, const Pointer& at) {
    std::vector<json> labels, wanted_labels;
    bool named = false;
    for (const auto& keys : {shape.keys(), std::vector<std::string>{"name"}}) {
      labels = labels_by(now, keys);
      wanted_labels = labels_by(wanted, keys);
      named = are_unique(labels) && are_unique(wanted_labels);
      if (named) break;
    }
    if (!named) {
      labels.assign(now.begin(), now.end());
      wanted_labels.assign(wanted.begin(), wanted.end());
    }
    std::vector<Element> elements;
    for (std::size_t i = 0; i < now.size(); ++i) elements.push_back(Element{labels[i], &now[i]});
    if (!named) pair_the_rest(elements, wanted_labels);
    remove_others(elements, wanted_labels, at);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!bring(elements, wanted_labels[i], i, at))
        operation("add", at / i)["value"] = wanted[i];
      else
        add(*elements[i].value, wanted[i], shape.element(), at / i);
    }
  }

  /// Removes the elements that are not wanted, the last one first.
  void remove_others(std::vector<Element>& elements, std::vector<json> wanted, const Pointer& at) {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto found = std::find(wanted.begin(), wanted.end(), elements[i].label);
      if (found == wanted.end())
        others.push_back(i);
      else
        wanted.erase(found);
    }
    for (auto i = others.rbegin(); i != others.rend(); ++i) {
      operation("remove", at / *i);
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(*i));
    }
  }

  /// Moves the element with the label to `to`. Returns false if there is none: then one is to be added there.
  bool bring(std::vector<Element>& elements, const json& label, std::size_t to, const Pointer& at) {
    const auto place = elements.begin() + static_cast<std::ptrdiff_t>(to);
    const auto found = std::find_if(place, elements.end(), [&](const Element& one) { return one.label == label; });
    if (found == elements.end()) {
      elements.insert(place, Element{label, nullptr});
      return false;
    }
    if (found == place) return true;
    operation("move", at / to)["from"] = (at / static_cast<std::size_t>(found - elements.begin())).to_string();
    std::rotate(place, found, found + 1);
    return true;
  }

  json out_ = json::array();
};

bool holds_any(const json& value, const std::vector<std::string>& secrets) {
  if (value.is_structured())
    return std::any_of(value.begin(), value.end(), [&](const json& one) { return holds_any(one, secrets); });
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return std::any_of(secrets.begin(), secrets.end(), [&](const std::string& secret) {
    return text == secret || (secret.size() >= kRecognised && text.find(secret) != std::string::npos);
  });
}

}  // namespace

json patch_between(const json& now, const json& wanted, const ListShape& shape) {
  Changes changes;
  changes.add(now, wanted, shape, Pointer());
  return changes.take();
}

bool tells(const json& patch, const std::vector<std::string>& secrets) {
  return std::any_of(patch.begin(), patch.end(),
                     [&](const json& one) { return one.contains("value") && holds_any(one["value"], secrets); });
}

}  // namespace driftd::k8s
