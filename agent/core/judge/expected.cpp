// SPDX-License-Identifier: Apache-2.0
#include "core/judge/expected.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "core/judge/judge.hpp"
#include "core/judge/normal_forms.hpp"
#include "core/judge/rules.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

bool is_secret(const Path& path, const Value& body, const KindSchema& schema) {
  const AttributeRule& rule = schema.rule(path);
  const Value* now = find(body, path);
  return rule.sensitive || rule.write_only || (now != nullptr && as_digest(*now));
}

/// Returns the topmost secret attribute at or above `path`. Empty if there is none.
Path secret_at(const Path& path, const Value& body, const KindSchema& schema) {
  Path out;
  for (Path at = path; !at.empty(); at = at.parent()) {
    if (is_secret(at, body, schema)) out = at;
  }
  return out;
}

/// Placeholder for the clear-text value that is expected of a secret. It equals no digest and reveals nothing.
Value hidden_secret() { return Value::Object{{"$hmac", Value("0:1:" + std::string(64, '0'))}}; }

/// Returns the expected value with hidden_secret() in place of clear-text values of secrets.
Value without_secrets(const Path& path, Value value, const Value& body, const KindSchema& schema) {
  if (value.is_null() || as_digest(value)) return value;
  if (Forms(schema).says_nothing(schema.rule(path), value)) return value;
  if (is_secret(path, body, schema)) return hidden_secret();
  if (schema.rule(path).single && value.array() == nullptr)  // it is read as a list of one
    return without_secrets(path.child(std::size_t{0}), std::move(value), body, schema);
  if (auto* object = value.object()) {
    for (auto& [name, member] : *object) member = without_secrets(path.child(name), std::move(member), body, schema);
  }
  if (auto* array = value.array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      (*array)[i] = without_secrets(path.child(i), std::move((*array)[i]), body, schema);
    }
  }
  return value;
}

/// Returns the expected value with its digest wherever the body has a digest, so that the two can be compared. Without
/// keys the value stays in clear text.
Value as_digests(const Path& path, Value value, const Value& body, const KindSchema& schema,
                 const DiffOptions& options) {
  if (options.keys == nullptr || value.is_null() || as_digest(value)) return value;
  const Value* now = find(body, path);
  if (const auto digest = now == nullptr ? std::nullopt : as_digest(*now)) {
    if (contains_digest(value)) return value;
    auto made = sealed_digest(value, options.id, Forms(schema).stable_path(body, path), schema, *options.keys,
                              digest->withheld);
    if (!made) return value;  // the caller treats a clear-text value of a secret as unknown
    const auto ours = as_digest(*made);
    return ours->key_id == digest->key_id && ours->revision == digest->revision ? *made : value;
  }
  if (schema.rule(path).single && value.array() == nullptr && now != nullptr && now->array() != nullptr)
    return as_digests(path.child(std::size_t{0}), std::move(value), body, schema, options);
  if (auto* object = value.object()) {
    for (auto& [name, member] : *object)
      member = as_digests(path.child(name), std::move(member), body, schema, options);
  }
  return value;
}

/// Returns why an expected value cannot be compared. Empty if it can. A secret can only be compared with a digest.
std::string incomparable(const Path& path, const Path& secret, const Value& value, const Value* now) {
  if (value.is_null()) return {};
  if (as_digest(value)) {
    const bool clear = now != nullptr && !now->is_null() && !as_digest(*now);
    return clear ? "declared as a secret, but read in clear: the two cannot be compared" : "";
  }
  const bool known = now != nullptr || secret != path;
  return !secret.empty() && known ? "a sensitive value cannot be compared with an expectation" : "";
}

void split_expected(const Path& path, const Value& value, const Value& body, const KindSchema& schema,
                    ExpectedAttributes& out) {
  const Value::Object* members = as_digest(value) ? nullptr : value.object();
  const AttributeRule& rule = schema.rule(path);
  // what a member means depends on the object, or the object stands for a text that is one value
  const bool one = rule.single || rule.fold_names || rule.closed || (rule.inside && !path.empty());
  const bool whole = !path.empty() && (members == nullptr || members->empty() || is_secret(path, body, schema) || one ||
                                       !Forms(schema).is_structure(rule));
  if (whole || members == nullptr) {
    out.emplace_back(path, value);
    return;
  }
  const auto gathered = Forms(schema).gathered(path, value);
  for (const auto& [name, member] : gathered ? *gathered->object() : *members)
    split_expected(path.child(name), member, body, schema, out);
}

/// Returns the entry as an object that has the first member of the path which counts as another one (`into`), so that
/// it is gathered; else the entry itself.
std::pair<Path, Value> seen_from_owner(const Path& path, const Value& value, const KindSchema& schema) {
  Path owner;
  const auto& segments = path.segments();
  for (std::size_t i = 0; schema.has_into() && i < segments.size(); ++i) {
    const Path here = owner.with(segments[i]);
    if (schema.rule(here).into.empty()) {
      owner = here;
      continue;
    }
    Value out = value;
    for (std::size_t j = segments.size(); j-- > i;) {
      const auto* name = std::get_if<std::string>(&segments[j]);
      if (name == nullptr) return {path, value};
      out = Value(Value::Object{{*name, std::move(out)}});
    }
    return {owner, std::move(out)};
  }
  return {path, value};
}

/// Returns each path once, with paths before those that lie below them.
ExpectedAttributes in_order(const ExpectedAttributes& wanted, const Value& body, const KindSchema& schema) {
  ExpectedAttributes out;
  std::set<std::string> done;
  for (const auto& [given, given_value] : wanted) {
    const auto [path, value] = seen_from_owner(given, given_value, schema);
    for (auto& one : expand_expected(path, value, body, schema)) {
      if (done.insert(one.first.render()).second) out.push_back(std::move(one));
    }
  }
  const auto by_depth = [](const auto& a, const auto& b) {
    return a.first.segments().size() < b.first.segments().size();
  };
  std::stable_sort(out.begin(), out.end(), by_depth);
  return out;
}

Value without_nulls(Value value) {
  if (auto* members = value.object()) {
    std::erase_if(*members, [](const auto& member) { return member.second.is_null(); });
    for (auto& [name, member] : *members) member = without_nulls(std::move(member));
  }
  if (auto* elements = value.array()) {
    for (auto& element : *elements) element = without_nulls(std::move(element));
  }
  return value;
}

/// Handles nulls inside an expected list, which mean, as elsewhere, that the member must be absent. Returns the list
/// that was read if it meets this, else the expected list without its nulls.
Value fill_nulls(const Path& path, Value list, const Value* now, const KindSchema& schema) {
  const Forms forms(schema);
  if (list.array() == nullptr || !forms.is_structure(schema.rule(path))) return list;
  Value lean = without_nulls(list);
  if (lean == list) return list;
  const bool holds = now != nullptr && now->array() != nullptr && forms.same(path, lean, without_nulls(*now));
  return holds ? *now : lean;
}

}  // namespace

Status add_expected(ExpectedAttributes& to, std::string_view key, Value value) {
  const auto path = Path::parse(key);
  if (!path) return fail(Code::invalid, "path '" + std::string(key) + "' is not valid: " + path.error().message);
  const bool twice = std::any_of(to.begin(), to.end(), [&](const auto& one) { return one.first == *path; });
  if (twice) return fail(Code::invalid, "path '" + path->render() + "' is given twice, in two spellings");
  to.emplace_back(*path, std::move(value));
  return {};
}

ExpectedAttributes expand_expected(const Path& path, const Value& value, const Value& body, const KindSchema& schema) {
  ExpectedAttributes out;
  split_expected(path, value, body, schema, out);
  return out;
}

ExpectedAttributes expand_declared(const Value& declared, const Value& body, const KindSchema& schema) {
  ExpectedAttributes out = expand_expected(Path{}, declared, body, schema);
  std::erase_if(out, [](const auto& one) { return one.second.is_null(); });
  return out;
}

Difference diff_expected(const ExpectedAttributes& wanted, const Value& read, const KindSchema& schema,
                         DiffOptions options) {
  std::optional<Value> gathered;  // else an older name that was read would hide what is expected of the newer one
  if (schema.has_into()) Forms(schema).gather(Path(), gathered.emplace(read));
  const Value& body = gathered ? *gathered : read;
  Value expected = body;
  std::vector<std::string> paths;
  Difference out;
  for (const auto& [path, given] : in_order(wanted, body, schema)) {
    const Value* now = find(body, path);
    const Value value = as_digests(path, fill_nulls(path, given, now, schema), body, schema, options);
    const Path secret = secret_at(path, body, schema);
    const std::string why = incomparable(path, secret, value, now);
    const std::string name = path.render();
    const Value shown = without_secrets(path, value, body, schema);
    if (!why.empty()) {
      out.unknown.push_back({secret.empty() ? name : secret.render(), why});
    } else if (shown.is_null() && now != nullptr && now->is_null()) {
      paths.push_back(name);
    } else if (!assign(expected, path, shown.is_null() ? nullptr : &shown)) {
      out.changes.push_back({name, schema.cls(path), render(shown), {}, as_digest(shown).has_value()});
    } else {
      paths.push_back(name);
    }
  }
  options.old_revision = schema.revision();
  options.declared_only = true;
  Difference found = diff(expected, body, schema, options);
  for (auto& one : found.unknown) {
    if (related_to_any(one.path, paths)) out.unknown.push_back(std::move(one));
  }
  // an attribute that is not expected can differ by a default that depends on one that is
  for (auto& one : found.changes) {
    if (related_to_any(one.path, paths)) out.changes.push_back(std::move(one));
  }
  if (options.trace != nullptr) {
    std::erase_if(*options.trace, [&](const Step& step) { return !related_to_any(step.path, paths); });
  }
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::stable_sort(out.changes.begin(), out.changes.end(), by_path);
  std::stable_sort(out.unknown.begin(), out.unknown.end(), by_path);
  return out;
}

namespace {

/// Adds the topmost members of `value`, which is an object at `path`, that lie neither at, above nor below a path of
/// `wanted`.
void add_not_expected(const Path& path, const Value& value, const std::vector<std::string>& wanted,
                      std::vector<std::string>& out) {
  for (const auto& [name, member] : *value.object()) {
    const Path child = path.child(name);
    const std::string text = child.render();
    const bool covered = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) {
      return one.size() <= text.size() && related(one, text);  // at or above it
    });
    if (covered) continue;
    const bool above = related_to_any(text, wanted);
    if (above && member.object() != nullptr) {
      add_not_expected(child, member, wanted, out);
    } else if (!above) {
      out.push_back(text);
    }
  }
}

}  // namespace

std::vector<std::string> not_expected(const ExpectedAttributes& wanted, const Value& body, const KindSchema& schema) {
  std::vector<std::string> paths, out;
  for (const auto& [path, value] : in_order(wanted, body, schema)) paths.push_back(path.render());
  if (body.object() != nullptr) add_not_expected(Path(), body, paths, out);
  return out;
}

Difference judge_expected(const ExpectedAttributes& expected, const Value& body,
                          const std::shared_ptr<const KindSchema>& schema, const ResourceId& id,
                          const std::shared_ptr<const RedactionKeys>& keys, const KnownNames* known) {
  auto rules = std::make_shared<Rules>();
  rules->expect.push_back({{}, expected, {}});
  JudgeContext context;
  context.schema = schema;
  context.rules = std::move(rules);
  context.keys = keys;
  context.known = known;
  StoredResource row;
  row.id = id;
  Present seen;
  seen.observation.id = id;
  seen.observation.body = render(body);
  Judgement judgement = judge(context, row, seen);
  Difference out;
  out.unknown = std::move(judgement.unknown);
  for (auto& drift : judgement.next.open) {
    std::move(drift.changes.begin(), drift.changes.end(), std::back_inserter(out.changes));
  }
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::stable_sort(out.changes.begin(), out.changes.end(), by_path);
  std::stable_sort(out.unknown.begin(), out.unknown.end(), by_path);
  return out;
}

bool related(std::string_view a, std::string_view b) {
  const auto trim = [](std::string_view& text) {
    if (text == "**") text = "";
    if (text.ends_with(".**")) text.remove_suffix(3);
  };
  trim(a);
  trim(b);
  if (a.size() > b.size()) std::swap(a, b);
  return a.empty() || a == b || (b.starts_with(a) && (b[a.size()] == '.' || b[a.size()] == '['));
}

bool related_to_any(std::string_view path, const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& other) { return related(path, other); });
}

}  // namespace driftd::core
