// SPDX-License-Identifier: Apache-2.0
#include "leaf_trials.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <stdexcept>

#include "support/process.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

/// Stands for "the leaf is not there" among values.
const json kAbsent = json::value_t::discarded;

/// Takes a leaf away, and the lists and maps that are empty without it.
void take_away_with_its_room(json& object, json::json_pointer where) {
  while (!where.empty() && object.contains(where)) {
    json& parent = object.at(where.parent_pointer());
    if (parent.is_array())
      parent.erase(0);
    else
      parent.erase(where.back());
    if (!parent.empty()) return;
    where.pop_back();
  }
}

json empty_value(const std::string& form) {
  if (form == "list") return json::array();
  if (form == "boolean") return false;
  if (form == "integer" || form == "number" || form == "int-or-string") return 0;
  if (form == "quantity") return "0";
  return form == "string" || form == "byte" ? json("") : json::object();
}

/// The reason of the API server, short.
std::string reason_of(const KubeServer::Answer& answer) {
  if (answer.body.is_object()) return answer.body.value("message", answer.text).substr(0, 300);
  return std::to_string(answer.status) + " " + answer.text.substr(0, 300);
}

/// Writes an object until the API server decides about it: no answer, 429, 503 and 504 say that it is busy.
KubeServer::Answer decided(const KubeServer& kube, const std::string& method, const std::string& path,
                           const json& object) {
  KubeServer::Answer answer;
  (void)eventually([&] {
    answer = kube.request(method, path, object.dump());
    return answer.status != 0 && answer.status != 429 && answer.status != 503 && answer.status != 504;
  });
  return answer;
}

}  // namespace

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (std::size_t at = next++; at < count; at = next++) work(at);
    }));
  }
  for (auto& each : threads) each.get();
}

json without_server_fields(json object) {
  object.erase("status");
  for (const char* each : {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
    object["metadata"].erase(each);
  if (object["metadata"].contains("annotations"))
    object["metadata"]["annotations"].erase("deprecated.daemonset.template.generation");
  return object;
}

LeafTrials::LeafTrials(const KubeServer& kube, const LeafTable& table, const LeafKind& kind, std::string space,
                       What what)
    : kube_(kube),
      table_(table),
      kind_(kind),
      what_(what),
      space_(std::move(space)),
      path_(kind.path(space_)),
      types_(kube.get("/openapi/v3/" + kind.document)) {
  std::set<std::string> proved;
  for (auto& leaf : what == What::changes ? types_.leaves(kind.type) : types_.places(kind.type)) {
    const std::string whole = table.refused_whole(kind, leaf);
    const bool skipped = what == What::empties && (!whole.empty() || !LeafTable::excepted(kind, leaf).empty());
    if (skipped || !table.outside(kind, leaf).empty()) {
      ++outside_;
      continue;
    }
    Trial trial;
    trial.values = what == What::changes ? table.values(kind, leaf) : std::vector<json>{empty_value(leaf.form)};
    trial.proof = !whole.empty() && proved.insert(whole).second;
    if (!whole.empty() && !trial.proof) trial.refusal = "like the others of " + whole;
    trial.leaf = std::move(leaf);
    trials_.push_back(std::move(trial));
  }
}

void LeafTrials::take_away(const Trial& trial, json& object) const {
  const auto where = table_.place(kind_, trial.leaf);
  if (what_ == What::changes) return take_away_with_its_room(object, where);
  if (object.contains(where) && object.at(where.parent_pointer()).is_object())
    object.at(where.parent_pointer()).erase(where.back());
}

void LeafTrials::create() {
  const Stored control = post("control", kind_.base);
  if (!control.done) throw std::runtime_error(kind_.kind + ": the base object is refused: " + control.reason);
  control_ = control.object.at("metadata").at("name");
  for_each_index(trials_.size(), [this](std::size_t i) { create_one(i); });
}

void LeafTrials::change() {
  const Stored control = put(kube_.get(path_ + "/" + control_));
  if (!control.done) throw std::runtime_error(kind_.kind + ": the base object cannot be written: " + control.reason);
  for_each_index(trials_.size(), [this](std::size_t i) { change_one(i); });
}

void LeafTrials::reset() {
  for_each_index(trials_.size(), [this](std::size_t i) { reset_one(i); });
}

LeafTrials::Stored LeafTrials::post(const std::string& name, json object) const {
  json& chosen = object["metadata"]["name"];
  chosen = name;
  if (const json::json_pointer group("/spec/group"), plural("/spec/names/plural"); object.contains(plural))
    chosen = object.at(plural).get<std::string>() + "." + object.at(group).get<std::string>();
  const std::string one = path_ + "/" + chosen.get<std::string>();
  for (int i = 0; i < 20; ++i) {
    const auto answer = decided(kube_, "POST", path_ + "?fieldManager=author", object);
    if (answer.status == 201) return {true, answer.body, {}};
    if (answer.status != 409) return {false, {}, reason_of(answer)};
    if (!kube_.remove_wholly(one))
      return {false, {}, "an object of this name stays: " + kube_.request("GET", one).text};
  }
  return {false, {}, "an object of this name is there again and again"};
}

void LeafTrials::own_group(const Trial& trial, std::size_t index, json& object) const {
  if (kind_.kind != "custom_resource_definition" || trial.leaf.text() == "spec.group") return;
  object["spec"]["group"] = "leaf-" + std::to_string(index) + ".example";
}

LeafTrials::Stored LeafTrials::put(const json& object) const {
  json sent = object;
  const std::string path = path_ + "/" + object.at("metadata").at("name").get<std::string>();
  for (int i = 0; i < 20; ++i) {
    const auto answer = decided(kube_, "PUT", path + "?fieldManager=editor", sent);
    if (answer.status == 200) return {true, answer.body, {}};
    if (answer.status != 409) return {false, {}, reason_of(answer)};
    sent["metadata"]["resourceVersion"] = kube_.get(path).at("metadata").at("resourceVersion");  // the server wrote to
                                                                                                 // it
  }
  return {false, {}, "the API server wrote to it again and again"};
}

json LeafTrials::at(const Leaf& leaf, const json& object) const {
  const auto where = table_.place(kind_, leaf);
  return object.contains(where) ? object.at(where) : json();
}

void LeafTrials::create_one(std::size_t index) {
  Trial& trial = trials_[index];
  if (!trial.refusal.empty()) return;
  std::size_t tried = 0;
  const std::string front = "leaf-" + std::to_string(index);
  for (const auto& value : trial.values) {
    json object = table_.build(kind_, types_, trial.leaf, value);
    own_group(trial, index, object);
    const Stored made = post(front + "-" + std::to_string(tried++), std::move(object));
    if (!made.done) {
      if (trial.refusal.empty() || tried == 1) trial.refusal = value.dump() + ": " + made.reason;
      continue;
    }
    trial.before = made.object.at("metadata").at("name");
    trial.stored_before = made.object;
    if (!at(trial.leaf, made.object).is_null()) {
      trial.refusal.clear();
      return;
    }
    trial.refusal = value.dump() + ": the API server took the object but not this field";
  }
}

bool LeafTrials::accept(Trial& trial, const std::string& name, const json& stored) {
  if (at(trial.leaf, stored) == at(trial.leaf, trial.stored_before)) return false;
  json one = without_server_fields(trial.stored_before), two = without_server_fields(stored);
  two["metadata"]["name"] = one["metadata"]["name"];
  take_away_with_its_room(one, table_.place(kind_, trial.leaf));
  take_away_with_its_room(two, table_.place(kind_, trial.leaf));
  trial.alone = one == two;
  trial.after = name;
  trial.stored_after = stored;
  trial.refusal.clear();
  return true;
}

bool LeafTrials::update(Trial& trial, const json& value) {
  json object = trial.stored_before;
  const auto where = table_.place(kind_, trial.leaf);
  if (value.is_discarded())
    take_away(trial, object);
  else
    object[where] = value;
  if (!value.is_discarded()) table_.add_companions(kind_, trial.leaf, value, object);
  const Stored now = put(object);
  if (!now.done && trial.refusal.empty()) trial.refusal = "change to " + value.dump() + ": " + now.reason;
  return now.done && accept(trial, trial.before, now.object);
}

bool LeafTrials::replace(Trial& trial, std::size_t index, const json& value) {
  json object =
      table_.build(kind_, types_, trial.leaf, value.is_discarded() ? at(trial.leaf, trial.stored_before) : value);
  if (value.is_discarded()) take_away(trial, object);
  own_group(trial, index, object);
  const Stored made = post(trial.before, std::move(object));
  return made.done && accept(trial, made.object.at("metadata").at("name"), made.object);
}

void LeafTrials::change_one(std::size_t index) {
  Trial& trial = trials_[index];
  if (!trial.refusal.empty()) return;
  std::vector<json> values = trial.values;
  std::erase_if(values, [&](const json& value) { return value == at(trial.leaf, trial.stored_before); });
  values.push_back(kAbsent);
  for (const auto& value : values)
    if (!kind_.recreated && update(trial, value)) return;
  for (const auto& value : values)
    if (replace(trial, index, value)) return;
  if (trial.refusal.empty()) trial.refusal = "the API server keeps one value whatever is written";
}

void LeafTrials::reset_one(std::size_t index) {
  Trial& trial = trials_[index];
  if (!trial.refusal.empty() || trial.before != trial.after) return;
  json object = kind_.base;
  own_group(trial, index, object);
  object["metadata"] = kind_.base.value("metadata", json::object());
  object["metadata"]["name"] = trial.after;
  object["metadata"]["resourceVersion"] = kube_.get(path_ + "/" + trial.after).at("metadata").at("resourceVersion");
  Stored now = kind_.recreated ? Stored{} : put(object);
  object["metadata"].erase("resourceVersion");
  if (!now.done) now = post(trial.after, std::move(object));
  if (!now.done) throw std::runtime_error(kind_.kind + "/" + trial.after + " cannot be reset: " + now.reason);
  trial.reset = without_server_fields(now.object) != without_server_fields(trial.stored_after);
}

}  // namespace driftd::test
