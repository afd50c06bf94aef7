// SPDX-License-Identifier: Apache-2.0
// Takes over a baseline that the provider converted from an older schema revision (semantics 10, driftd.upgrade/1).
#include <algorithm>

#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

bool same(const Value* a, const Value* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return render(*a) == render(*b);
}

/// Finds digests of an upgraded body that are no longer at the path or under the rule that they were made for.
class Digests {
 public:
  Digests(const Value& before, const KindSchema* former, const KindSchema& schema)
      : before_(before),
        former_(former),
        schema_(schema) {}

  /// Returns the paths of values that must be dropped: the deepest attribute of each, lists as a whole.
  std::vector<Path> foreign(const Value& body) {
    members(Path{}, body);
    return std::move(out_);
  }

 private:
  void members(const Path& path, const Value& object) {
    for (const auto& [name, value] : *object.object()) attribute(path.child(name), value);
  }
  void attribute(const Path& path, const Value& value) {
    if (!contains_digest(value)) return;
    if (value.object() != nullptr && !as_digest(value)) return members(path, value);
    const bool schema_changed = former_ != nullptr && !same_interpretation(former_->rule(path), schema_.rule(path));
    if (schema_changed || !same(find(before_, path), &value)) out_.push_back(path);
  }

  const Value& before_;
  const KindSchema* former_;
  const KindSchema& schema_;
  std::vector<Path> out_;
};

}  // namespace

Result<UpgradedRow> adopt_upgraded_baseline(const JudgeContext& context, const StoredResource& stored,
                                            const std::string& body) {
  DRIFTD_TRY(const Value before, parse(*stored.baseline));
  DRIFTD_TRY(Value after, parse(body));
  if (before.object() == nullptr || after.object() == nullptr) {
    return fail(Code::corrupt, "the upgraded body of " + render(stored.id) + " is not a JSON object");
  }
  const auto former = context.former.find(stored.schema_revision);
  const KindSchema* old_schema = former == context.former.end() ? nullptr : former->second.get();
  UpgradedRow out{stored, {}};
  for (const auto& path : Digests(before, old_schema, *context.schema).foreign(after)) {
    DRIFTD_CHECK(assign(after, path, nullptr));
    out.row.was_unread.push_back(path.render());
  }
  for (const auto& drift : stored.open) {
    for (const auto& change : drift.changes) {
      if (change.path == kIdentityPath) continue;
      const Path path = attribute_path(change.path);
      if (!same(find(before, path), find(after, path))) out.moved.push_back(change.path);
    }
  }
  out.row.baseline = render(after);
  return out;
}

}  // namespace driftd::core
