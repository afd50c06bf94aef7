// SPDX-License-Identifier: Apache-2.0
// Which backend a Helm release is, and what its chart calls its parts. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "controller/key.hpp"
#include "k8s/prism.hpp"

namespace driftd::op {

/// A release that is or was deployed.
struct Release {
  std::string space, name;                           ///< of the release
  std::string chart, version;                        ///< `redis`, `19.0.0`: Helm does not store the chart's repository
  nlohmann::json values = nlohmann::json::object();  ///< those that its user gave
  friend bool operator==(const Release&, const Release&) = default;
};

/// How the backend of a chart is found. In patterns `{{.Release}}`, `{{.Namespace}}` and `{{.Fullname}}` are replaced:
/// the last is what most charts name their parts by, the release with `-<chart>` behind it unless it holds that, or the
/// value fullnameOverride.
struct ChartPattern {
  std::string chart;                           ///< `bitnami/redis`; a release matches by what follows the slash
  std::string type;                            ///< of the backend
  std::vector<std::string> services, secrets;  ///< the first that exists counts; no secret exists: none is named
  std::string password_key;                    ///< in that Secret
  std::int64_t port = 0;                       ///< 0: the usual one of the type
  std::vector<std::string> capabilities;
  friend bool operator==(const ChartPattern&, const ChartPattern&) = default;
};

/// The charts of the discovery RFC's Appendix A.
const std::vector<ChartPattern>& known_charts();

/// Reads `patterns.yaml` of the ConfigMap prism-helm-patterns: a list of {chartName, backendType, servicePattern,
/// secretPattern, secretPasswordKey} and of our own port and capabilities. Throws std::runtime_error with line and
/// column, what was expected and what was found.
std::vector<ChartPattern> read_patterns(const std::string& yaml);

/// The first pattern of this chart: `own` come before the known ones. Null: the chart is not known.
const ChartPattern* pattern_of(const Release& release, const std::vector<ChartPattern>& own);

/// Returns the PrismBackend of a release as it is applied, under `name`. `find` is asked which of several Services or
/// Secrets there is. A port that the Service does not have is left out.
nlohmann::json backend_of_release(const Release& release, const ChartPattern& pattern, const std::string& name,
                                  const std::function<std::optional<nlohmann::json>(const k8s::Ref&)>& find);
/// All that the object's Service and Secret could be: a change of those is a reason to look again.
std::vector<k8s::Ref> candidates(const Release& release, const ChartPattern& pattern);

/// `<release>-<namespace>`; `taken`: with six characters behind it that no other release has.
std::string backend_name(const Release& release, bool taken);

/// The release that an object was made of, by its label and annotation; nullopt for others.
std::optional<controller::Key> release_of(const nlohmann::json& object);
/// As what a release is noted among those that refer to objects (ClusterView::set_references), and back. The name of a
/// PrismBackend has no colon.
std::string reference_of(const controller::Key& release);
std::optional<controller::Key> release_of_reference(const std::string& who);

/// Labels and annotations of objects that the operator made.
inline constexpr const char* kAutoDiscovered = "prism.io/auto-discovered";
inline constexpr const char* kHelmRelease = "prism.io/helm-release";
inline constexpr const char* kHelmChart = "prism.io/helm-chart";
inline constexpr const char* kReleaseId = "prism.io/helm-release-id";  ///< annotation: `namespace/release`

}  // namespace driftd::op
