// SPDX-License-Identifier: Apache-2.0
// Stage of judge() (README.md): a resource that nobody wrote since it was last read, but that reads differently now.
#include "core/judge/stages.hpp"

namespace driftd::core {
namespace {

std::vector<std::string> differing_paths(const Difference& difference) {
  std::vector<std::string> out;
  for (const auto& change : difference.changes) out.push_back(change.path);
  for (const auto& unknown : difference.unknown) out.push_back(unknown.path);
  return out;
}

}  // namespace

bool is_same_write(const KindSchema& schema, const StoredResource& stored, const Observation& seen) {
  const bool was_read = stored.observed && *stored.observed != "{}";
  return schema.versioned() && was_read && !seen.version.empty() && stored.version == seen.version &&
         stored.observed_external_name == seen.external_name;
}

std::vector<std::string> adopt_reread(const JudgeContext& context, const StoredResource& stored,
                                      const Observation& seen, const Value& body, Value& baseline) {
  const KindSchema& schema = *context.schema;
  if (!stored.baseline || !is_same_write(schema, stored, seen)) return {};
  const Result<Value> observed = parse(*stored.observed);
  if (!observed) return {};
  DiffOptions options;
  options.old_revision = schema.revision();
  options.id = stored.id;
  options.keys = context.keys.get();
  const std::vector<std::string> open = differing_paths(diff(baseline, *observed, schema, options));
  options.unread = seen.unread;
  std::vector<std::string> out;
  for (const auto& change : diff(*observed, body, schema, options).changes) {
    if (related_to_any(change.path, open) || related_to_any(change.path, stored.was_unread)) continue;
    const Path path = attribute_path(change.path);
    if (assign(baseline, path, find(body, path))) out.push_back(change.path);
  }
  return out;
}

}  // namespace driftd::core
