// SPDX-License-Identifier: Apache-2.0
#include "kube/outline.hpp"

namespace driftd::kube {
namespace {

class Outline final : public common::BoundedBuild {
 public:
  Outline() : BoundedBuild(common::kMaxNesting, common::kMaxParsed) {}

 protected:
  bool keeps(const std::vector<std::string>& path, const std::string& key) const override {
    const std::size_t at = path.size() > 1 && path[1] == "object" ? 2 : 1;  // of the object, which an event holds
    if (path.size() > at) return key != "fieldsV1";
    return key == "metadata" || (path.size() == 1 && key == "object");
  }
};

}  // namespace

common::BoundedJson parse_object(std::string_view text) {
  common::BoundedJson out = common::parse_bounded(text);
  if (!out.cut || !out.value.is_discarded() || out.why.empty()) return out;
  Outline outline;
  if (common::BoundedBuild::json::sax_parse(text, &outline)) out.value = outline.take();
  return out;
}

}  // namespace driftd::kube
