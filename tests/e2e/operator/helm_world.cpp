// SPDX-License-Identifier: Apache-2.0
#include "helm_world.hpp"

#include <filesystem>

namespace driftd::test {

std::string HelmWorld::folder(const Chart& chart) const {
  const std::string at = "charts/" + chart.name;
  std::filesystem::create_directories(dir.file(at + "/templates"));
  dir.write(at + "/Chart.yaml", "apiVersion: v2\nname: " + chart.name + "\nversion: 19.0.0\nappVersion: \"7\"\n");
  // The rule of the well-known charts: the release, with the chart's name behind it unless it holds that.
  const std::string full =
      "{{- define \"full\" -}}{{- if .Values.fullnameOverride -}}{{ .Values.fullnameOverride }}{{- else if contains "
      ".Chart.Name .Release.Name -}}{{ .Release.Name }}{{- else -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end "
      "-}}{{- "
      "end -}}\n";
  const auto named = [](std::string name) {
    const std::size_t at = name.find("FULL");
    return at == std::string::npos ? name : name.replace(at, 4, "{{ include \"full\" . }}");
  };
  dir.write(at + "/templates/_full.tpl", full);
  std::string objects = "apiVersion: v1\nkind: Service\nmetadata: { name: '" + named(chart.service) +
                        "' }\nspec: { ports: [{ port: " + std::to_string(chart.port) + " }] }\n";
  if (!chart.key.empty()) {
    objects += "---\napiVersion: v1\nkind: Secret\nmetadata: { name: '" + named(chart.secret) + "' }\nstringData: { " +
               chart.key + ": " + chart.value + " }\n";
  }
  dir.write(at + "/templates/objects.yaml", objects);
  return dir.file(at);
}

void HelmWorld::install(const std::string& release, const Chart& chart, const std::string& space,
                        const std::vector<std::string>& more) const {
  std::vector<std::string> words = {"upgrade", "--install", release, folder(chart), "-n", space};
  words.insert(words.end(), more.begin(), more.end());
  const Output done = kube.helm(words);
  ASSERT_EQ(done.code, 0) << done.err;
}

void HelmWorld::uninstall(const std::string& release, const std::string& space) const {
  const Output done = kube.helm({"uninstall", release, "-n", space});
  ASSERT_EQ(done.code, 0) << done.err;
}

}  // namespace driftd::test
