// SPDX-License-Identifier: Apache-2.0
#include "core/silence.hpp"

#include "core/drift.hpp"
#include "core/value/path.hpp"

namespace driftd::core {

bool Silence::matches(const std::string& of_backend, const Drift& drift) const {
  const auto fits = [](const std::string& glob, std::string_view text) {
    return glob.empty() || Glob::of_name(glob).matches(text);
  };
  return fits(backend, of_backend) && fits(kind, drift.resource.kind) && fits(name, drift.resource.id) &&
         fits(cls, render(drift.cls));
}

}  // namespace driftd::core
