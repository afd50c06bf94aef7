// SPDX-License-Identifier: Apache-2.0
// Values of which one or both are digests.
#include "core/judge/walk.hpp"
#include "core/redact.hpp"

namespace driftd::core {

void Walk::compare_digests(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const auto left = sides.before ? as_digest(*sides.before) : std::nullopt,
             right = sides.after ? as_digest(*sides.after) : std::nullopt;
  const bool left_clear = sides.before && !sides.before->is_null() && !left,
             right_clear = sides.after && !sides.after->is_null() && !right;
  if (left_clear || right_clear) return compare_clear_text(path, rule, sides);
  if (!left || !right) return change(path, rule, sides);
  if (left->key_id != right->key_id || left->revision != right->revision) {
    return options_.declared_only ? unknown(path, sides, rule, "digests under different keys")
                                  : fill(path, sides, rule, "digests under another key");
  }
  if (left->hex != right->hex) return change(path, rule, sides);
  return left->withheld == right->withheld || options_.declared_only ? equal(path, sides, rule, "same digest")
                                                                     : fill(path, sides, rule, "same digest", true);
}

void Walk::compare_clear_text(const Path& path, const AttributeRule& rule, const Sides& sides) {
  const Value& clear = as_digest(*sides.before) ? *sides.after : *sides.before;
  const DigestRef digest = as_digest(*sides.before) ? *as_digest(*sides.before) : *as_digest(*sides.after);
  if (contains_digest(clear) && !options_.declared_only) return change(path, rule, sides);
  std::optional<DigestRef> same;
  if (options_.keys != nullptr && !contains_digest(clear)) {
    const auto made = sealed_digest(clear, options_.id, path, schema_, *options_.keys, digest.withheld);
    if (!made) return unknown(path, sides, rule, "cannot be compared: " + made.error().message);
    same = as_digest(*made);
  }
  const bool comparable = same && same->key_id == digest.key_id && same->revision == digest.revision;
  if (options_.declared_only && !comparable) {
    return unknown(path, sides, rule, "secret: only its digest is known, which no declared value can equal");
  }
  const bool was_clear = &clear == sides.before;
  if (!comparable) return fill(path, sides, rule, was_clear ? "became secret" : "is no longer secret");
  if (same->hex != digest.hex) return change(path, rule, sides);
  if (options_.declared_only) return equal(path, sides, rule, "same digest");
  fill(path, sides, rule, was_clear ? "the same value, now withheld" : "the same value, now shown", true);
}

}  // namespace driftd::core
