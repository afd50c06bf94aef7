// SPDX-License-Identifier: Apache-2.0
#include "k8s/shares.hpp"

#include <algorithm>

#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMostFaults = 16;  // of one namespace that are reported one by one
constexpr std::size_t kNode = 64;        // a value of a tree in memory, beside its text

/// What an object takes in memory: many small values take more than their text.
std::size_t weight(const json& value) {
  std::size_t out = kNode;
  if (value.is_string()) out += value.get_ref<const std::string&>().size();
  if (!value.is_structured()) return out;
  for (const auto& [name, each] : value.items()) out += (value.is_object() ? name.size() : 0) + weight(each);
  return out;
}

/// Returns the object without managedFields, which make up most of many objects and define nothing.
json slim(json object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object() || !metadata->contains("managedFields")) return object;
  for (auto& each : metadata->at("managedFields")) {
    if (each.is_object()) each.erase("fieldsV1");
  }
  return object;
}

/// What belongs to the cluster was made by those who may do anything there, so only the limits of all count for it.
bool is_limited(const std::string& space) { return !space.empty(); }

std::string name_of(const std::string& space) {
  return space.empty() ? "what the cluster itself defines" : "namespace " + space;
}

std::string mib(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

/// An object in another namespace counts for the namespace of the definition that refers to it.
const std::string& Shares::payer(const Ref& ref) const {
  const auto found = held_for_.find(ref);
  return found == held_for_.end() ? ref.space : found->second;
}

void Shares::put(Objects& objects, const Ref& ref, const json& object) {
  const std::string space = payer(ref);
  release(space, ref);
  if (passes_over(ref.space) || passes_over(space)) {
    objects.erase(ref);
    held_for_.erase(ref);
    return;
  }
  json kept = slim(object);
  charge(space, ref, weight(kept));
  objects[ref] = std::move(kept);
  const Used& here = used_[space];
  if (!is_limited(space)) return make_room(objects);
  if (here.objects.size() > limits_.objects) {
    return pass_over(
        objects, space,
        "more than " + std::to_string(limits_.objects) + " of its objects are labelled as parts of backends");
  }
  if (here.bytes > limits_.bytes) {
    return pass_over(objects, space, "what defines its backends takes more than " + mib(limits_.bytes));
  }
  make_room(objects);
}

void Shares::remove(Objects& objects, const Ref& ref) {
  release(payer(ref), ref);
  held_for_.erase(ref);
  objects.erase(ref);
}

bool Shares::put_for(Objects& objects, const std::string& space, const Ref& ref, json object) {
  json kept = slim(std::move(object));
  const auto metadata = kept.find("metadata");
  if (metadata != kept.end() && metadata->is_object() && passes_over(ref.space)) metadata->erase("labels");
  const std::size_t bytes = weight(kept);
  const bool fits = (!is_limited(space) || used_[space].bytes + bytes <= limits_.bytes) &&
                    bytes_ + bytes <= limits_.all_bytes && objects_ < limits_.all_objects;
  if (!fits || passes_over(space)) return false;
  charge(space, ref, bytes);
  if (space != ref.space) held_for_[ref] = space;
  objects[ref] = std::move(kept);
  return true;
}

void Shares::count(Objects& objects, const Definitions& definitions, const std::vector<sdk::Diagnostic>& faults) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> of_each;  // how many, and bytes of all that they use
  for (const auto& [place, definition] : definitions) {
    auto& [many, bytes] = of_each[definition.space];
    ++many;
    for (const auto& ref : {definition.prism, definition.service, definition.secret, definition.config_map}) {
      if (!ref) continue;
      const auto& of_payer = used_[payer(*ref)].objects;
      const auto found = of_payer.find(*ref);
      if (found != of_payer.end()) bytes += found->second;
    }
  }
  for (const auto& fault : faults) ++of_each[fault.path].first;
  for (const auto& [space, used] : of_each) {
    if (!is_limited(space)) continue;
    if (used.first > limits_.definitions) {
      pass_over(objects, space, "it defines more than " + std::to_string(limits_.definitions) + " backends");
    } else if (used.second > 2 * limits_.bytes) {
      pass_over(
          objects, space,
          "what its backends are made of takes more than " + mib(2 * limits_.bytes) + ", counted for each of them");
    }
  }
}

void Shares::tell(std::vector<sdk::Diagnostic>& diagnostics) const {
  for (const auto& [space, why] : passed_) {
    diagnostics.push_back(
        {DRIFTD_BUDGET,
         kRegistration,
         {},
         space,
         name_of(space) + " is passed over: " + why + "; what is known of its backends stays, nothing new is taken"});
  }
}

void Shares::pass_over(Objects& objects, const std::string& space, std::string why) {
  passed_.try_emplace(space, std::move(why));
  const auto used = used_.extract(space);
  if (!used) return;
  for (const auto& [ref, bytes] : used.mapped().objects) {
    objects.erase(ref);
    held_for_.erase(ref);
  }
  objects_ -= used.mapped().objects.size();
  bytes_ -= used.mapped().bytes;
}

void Shares::charge(const std::string& space, const Ref& ref, std::size_t bytes) {
  Used& used = used_[space];
  used.objects[ref] = bytes;
  used.bytes += bytes;
  bytes_ += bytes;
  ++objects_;
}

void Shares::release(const std::string& space, const Ref& ref) {
  const auto used = used_.find(space);
  if (used == used_.end()) return;
  const auto found = used->second.objects.find(ref);
  if (found == used->second.objects.end()) return;
  used->second.bytes -= found->second;
  bytes_ -= found->second;
  --objects_;
  used->second.objects.erase(found);
}

void Shares::make_room(Objects& objects) {
  while (objects_ > limits_.all_objects || bytes_ > limits_.all_bytes) {
    const bool many = objects_ > limits_.all_objects;
    const auto less = [&](const auto& a, const auto& b) {
      return many ? a.second.objects.size() < b.second.objects.size() : a.second.bytes < b.second.bytes;
    };
    const std::string largest = std::max_element(used_.begin(), used_.end(), less)->first;
    pass_over(objects, largest,
              "all namespaces together have more than " + std::to_string(limits_.all_objects) +
                  " labelled objects, or " + mib(limits_.all_bytes) + " of them, and it has most");
  }
}

std::vector<sdk::Diagnostic> fold_by_namespace(const std::vector<sdk::Diagnostic>& diagnostics) {
  std::map<std::string, std::size_t> of_each;
  const auto counts = [](const sdk::Diagnostic& each) { return each.kind == kRegistration && !each.id.empty(); };
  for (const auto& each : diagnostics) of_each[each.path] += counts(each) ? 1 : 0;
  std::vector<sdk::Diagnostic> out;
  for (const auto& each : diagnostics) {
    std::size_t& many = of_each[each.path];
    if (!counts(each) || (many > 0 && many <= kMostFaults)) {
      out.push_back(each);
    } else if (many > kMostFaults) {  // the first of them
      out.push_back(sdk::Diagnostic{
          each.code,
          kRegistration,
          {},
          each.path,
          name_of(each.path) + ": " + std::to_string(many) + " faults of what defines its backends, as: " + each.text});
      many = 0;
    }
  }
  return out;
}

}  // namespace driftd::k8s
