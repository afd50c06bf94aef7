// SPDX-License-Identifier: Apache-2.0
#include "core/redact.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/disclosure.hpp"
#include "core/judge/normal_forms.hpp"
#include "core/slow_digest.hpp"
#include "core/value/parse_limits.hpp"

namespace driftd::core {
namespace {

constexpr std::string_view kDigestMember = "$hmac";
constexpr std::string_view kRedacted = "[REDACTED]";

constexpr std::string_view kWithheld = ":withheld";

Value digest_value(const std::string& key_id, int revision, const std::string& hex, bool withheld) {
  const std::string text = key_id + ":" + std::to_string(revision) + ":" + hex + std::string(withheld ? kWithheld : "");
  return Value(Value::Object{{std::string(kDigestMember), Value(text)}});
}

/// Returns w, the worker's digest of a value, as hex.
std::string worker_hex(const Value& value, const ResourceId& id, const Path& path, const KindSchema& schema,
                       const Key& key) {
  auto normal = normalise(schema.rule(path), value);
  if (!normal) {  // not of its type: uses the text as it is, because the error would quote the secret
    AttributeRule plain;
    normal = normalise(plain, value);
  }
  return hmac_hex(key, {id.kind, id.id, path.render(), normal ? *normal : render(value)});
}

/// Returns the revision of a digest at `path`.
int revision_at(const Path& path, const KindSchema& schema) {
  Path list;
  for (const auto& segment : path.segments()) {
    if (std::holds_alternative<Path::Selector>(segment)) return kElementRevision;
    const bool element = std::holds_alternative<Path::Index>(segment);
    if (element && schema.rule(list).collection == Collection::map_by_keys) return kElementRevision;
    list = list.with(segment);
  }
  return kNormaliserRevision;
}

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

/// Replaces the secrets of one record by worker digests.
class WorkerRedaction {
 public:
  WorkerRedaction(const ResourceId& id, const KindSchema& schema, const RedactionKey& key, const Disclosure* disclosure)
      : id_(id),
        schema_(schema),
        forms_(schema),
        key_(key),
        disclosure_(disclosure) {}

  /// Adds an attribute path or a pattern that the record marks as sensitive. One that cannot be parsed covers
  /// everything.
  void add(const std::string& path) {
    auto glob = Glob::parse_path(path);
    named_.push_back(glob ? std::move(*glob) : Glob::parse_path("**").value());
  }

  /// `path` names elements by index, as rules and patterns expect; `bound_path` is the one that digests are bound to.
  /// Both are as they were when it returns.
  void walk(Path& path, Path& bound_path, Value& value) const {
    if (value.is_null()) return;
    const bool forged = value.object() != nullptr && value.object()->contains(kDigestMember);
    const AttributeRule& rule = schema_.rule(path);
    if (!path.empty() && !forged && forms_.says_nothing(rule, value)) return;
    if (!path.empty() && (forged || secret(path, rule))) {
      value = make_digest(bound_path, value, false);
      return;
    }
    if (rule.single && value.array() == nullptr) {
      // it is read as a list of one, so the rules of the elements hold for it
      const auto element_paths = forms_.element_paths(path, Value::Array{value});
      return walk_below(path, Path::Index{0}, bound_path, element_paths.segment(0), value);
    }
    if (value.object() == nullptr && value.array() == nullptr) return leaf(path, bound_path, value);
    if (auto* object = value.object()) {
      for (auto& [name, member] : *object) walk_below(path, name, bound_path, name, member);
    }
    if (auto* array = value.array()) {
      const auto element_paths = forms_.element_paths(path, *array);
      for (std::size_t i = 0; i < array->size(); ++i)
        walk_below(path, Path::Index{i}, bound_path, element_paths.segment(i), (*array)[i]);
    }
  }

 private:
  void walk_below(Path& path, Path::Segment segment, Path& bound_path, Path::Segment bound, Value& value) const {
    path.push(std::move(segment));
    bound_path.push(std::move(bound));
    walk(path, bound_path, value);
    path.pop();
    bound_path.pop();
  }

  bool secret(const Path& path, const AttributeRule& rule) const {
    return rule.sensitive || rule.write_only ||
           std::any_of(named_.begin(), named_.end(), [&](const Glob& glob) { return glob.matches(path); });
  }

  void leaf(const Path& path, const Path& bound_path, Value& value) const {
    const Visibility showing = disclosure_ == nullptr ? Visibility::shown : disclosure_->of(id_, path, value);
    if (showing != Visibility::shown) value = make_digest(bound_path, value, showing == Visibility::withheld);
  }

  Value make_digest(const Path& bound_path, const Value& value, bool withheld) const {
    return digest_value(key_.id, revision_at(bound_path, schema_),
                        worker_hex(value, id_, bound_path, schema_, key_.key), withheld);
  }

  const ResourceId& id_;
  const KindSchema& schema_;
  Forms forms_;
  const RedactionKey& key_;
  const Disclosure* disclosure_;
  std::vector<Glob> named_;
};

/// Returns `hex` with all layers from number `first` on.
Result<std::string> add_layers(std::string hex, const RedactionKey& key, std::size_t first) {
  for (std::size_t i = first; i < key.layers.size(); ++i) {
    const KeyLayer& layer = key.layers[i];
    if (layer.kind == LayerKind::hmac) {
      hex = hmac_hex(layer.key, {hex});
    } else {
      DRIFTD_TRY(hex, slow_hex(layer.key, hex));
    }
  }
  return hex;
}

Result<std::string> sealed_hex(const std::string& worker_hex, const RedactionKey& key) {
  return add_layers(hmac_hex(key.key, {worker_hex}), key, 0);
}

/// The id joins both key ids, so that a new key of either step causes a new baseline and does not look like a rotation.
std::string join_ids(const std::string& store_id, const std::string& worker_id) { return store_id + worker_id; }

Status seal_value(Value& value, const RedactionKey& key) {
  if (const auto worker = as_digest(value)) {
    DRIFTD_TRY(const std::string hex, sealed_hex(worker->hex, key));
    value = digest_value(join_ids(key.newest_id(), worker->key_id), worker->revision, hex, worker->withheld);
    return {};
  }
  if (auto* object = value.object()) {
    for (auto& [name, member] : *object) DRIFTD_CHECK(seal_value(member, key));
  }
  if (auto* array = value.array()) {
    for (auto& element : *array) DRIFTD_CHECK(seal_value(element, key));
  }
  return {};
}

/// Returns the number of layers that a digest with this id has. If it was made with other keys, returns the number of
/// all layers, so that none is added.
std::size_t layers_around(const std::string& key_id, const RedactionKeys& keys) {
  const auto& layers = keys.store.layers;
  if (key_id == join_ids(keys.store.id, keys.worker.id)) return 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (key_id == join_ids(layers[i].id, keys.worker.id)) return i + 1;
  }
  return layers.size();
}

Value without_digests(const Value& value) {
  if (as_digest(value)) return Value(std::string(kRedacted));
  if (const auto* object = value.object()) {
    Value::Object out;
    for (const auto& [name, member] : *object) out.emplace(name, without_digests(member));
    return Value(std::move(out));
  }
  if (const auto* array = value.array()) {
    Value::Array out;
    for (const auto& element : *array) out.push_back(without_digests(element));
    return Value(std::move(out));
  }
  return value;
}

/// A digest is two values in place of one, so the agent allows more values than the worker: a body that was within the
/// worker's limits must be within these, too.
constexpr ParseLimits kRedactedLimits{.bytes = kBodyLimits.bytes, .nodes = kBodyLimits.nodes * 5 / 2};

Result<Value> parse_body(std::string_view json, const ParseLimits& limits) {
  DRIFTD_TRY(Value value, parse(json, limits));
  if (value.object() == nullptr) return fail(Code::corrupt, "a record's body: expected a JSON object");
  return value;
}

}  // namespace

bool RedactionKey::slow() const {
  return std::any_of(layers.begin(), layers.end(), [](const KeyLayer& layer) { return layer.kind == LayerKind::slow; });
}

std::optional<DigestRef> as_digest(const Value& value) {
  const auto* object = value.object();
  if (object == nullptr || object->size() != 1) return std::nullopt;
  const Value* member = value.find(kDigestMember);
  const auto* text = member == nullptr ? nullptr : member->string();
  if (text == nullptr) return std::nullopt;
  std::string_view rest = *text;
  DigestRef out;
  out.withheld = rest.ends_with(kWithheld);
  if (out.withheld) rest.remove_suffix(kWithheld.size());
  const auto first = rest.find(':'), second = rest.rfind(':');
  if (first == std::string::npos || first == second) return std::nullopt;
  out.key_id = rest.substr(0, first);
  out.hex = rest.substr(second + 1);
  const auto [at, error] = std::from_chars(rest.data() + first + 1, rest.data() + second, out.revision);
  const bool sound = error == std::errc() && at == rest.data() + second && out.revision > 0 && out.hex.size() == 64 &&
                     is_hex(out.hex) && !out.key_id.empty() && is_hex(out.key_id);
  return sound ? std::optional(out) : std::nullopt;
}

bool holds_withheld(const Value& value) {
  if (const auto* text = value.string()) return *text == "[REDACTED]";
  if (const auto* list = value.array()) return std::any_of(list->begin(), list->end(), holds_withheld);
  if (const auto* object = value.object()) {
    return std::any_of(object->begin(), object->end(),
                       [](const auto& member) { return member.first == "$hmac" || holds_withheld(member.second); });
  }
  return false;
}

bool contains_digest(const Value& value) {
  if (as_digest(value)) return true;
  if (const auto* object = value.object()) {
    return std::any_of(object->begin(), object->end(), [](const auto& item) { return contains_digest(item.second); });
  }
  const auto* array = value.array();
  return array != nullptr && std::any_of(array->begin(), array->end(), contains_digest);
}

bool is_of_secret(const std::optional<std::string>& json) {
  if (!json || json->find(kDigestMember) == std::string::npos) return false;
  const Result<Value> value = parse(*json);
  const auto digest = value ? as_digest(*value) : std::nullopt;
  return digest && !digest->withheld;
}

Result<std::string> redact(std::string_view body, const ResourceId& id, const KindSchema& schema,
                           const std::vector<std::string>& sensitive, const RedactionKey& worker_key,
                           const Disclosure* disclosure) {
  DRIFTD_TRY(Value value, parse_body(body, kBodyLimits));
  WorkerRedaction redaction(id, schema, worker_key, disclosure);
  for (const auto& path : sensitive) redaction.add(path);
  if (value.object()->contains(kDigestMember))
    return fail(Code::corrupt, "a record's body: \"$hmac\" is reserved for digests");
  Forms(schema).gather(Path(), value);  // digests are bound to paths, so members must be where they count
  Path path, bound_path;
  redaction.walk(path, bound_path, value);
  return render(value);
}

Result<std::string> seal(std::string_view body, const RedactionKey& store_key) {
  DRIFTD_TRY(Value value, parse_body(body, kRedactedLimits));
  DRIFTD_CHECK(seal_value(value, store_key));
  return render(value);
}

Result<bool> rewrap(Value& value, const RedactionKeys& keys) {
  if (const auto digest = as_digest(value)) {
    const std::size_t around = layers_around(digest->key_id, keys);
    if (around == keys.store.layers.size()) return false;
    DRIFTD_TRY(const std::string hex, add_layers(digest->hex, keys.store, around));
    value = digest_value(join_ids(keys.store.newest_id(), keys.worker.id), digest->revision, hex, digest->withheld);
    return true;
  }
  bool changed = false;
  if (auto* object = value.object()) {
    for (auto& [name, member] : *object) {
      DRIFTD_TRY(const bool one, rewrap(member, keys));
      changed |= one;
    }
  }
  if (auto* array = value.array()) {
    for (auto& element : *array) {
      DRIFTD_TRY(const bool one, rewrap(element, keys));
      changed |= one;
    }
  }
  return changed;
}

Result<std::string> rewrap(std::string_view json, const RedactionKeys& keys) {
  DRIFTD_TRY(Value value, parse(json));
  DRIFTD_TRY([[maybe_unused]] const bool changed, rewrap(value, keys));
  return render(value);
}

Result<Value> sealed_digest(const Value& value, const ResourceId& id, const Path& path, const KindSchema& schema,
                            const RedactionKeys& keys, bool withheld) {
  DRIFTD_TRY(const std::string hex, sealed_hex(worker_hex(value, id, path, schema, keys.worker.key), keys.store));
  return digest_value(join_ids(keys.store.newest_id(), keys.worker.id), revision_at(path, schema), hex, withheld);
}

std::string presentable(const Value& value) { return render(without_digests(value)); }

std::string presentable_json(std::string_view json) {
  const auto value = parse(json);
  return value ? presentable(*value) : std::string("\"[REDACTED]\"");
}

}  // namespace driftd::core
