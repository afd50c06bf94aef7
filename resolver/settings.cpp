// SPDX-License-Identifier: Apache-2.0
#include "resolver/settings.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>

namespace driftd::resolver {
namespace {

using std::chrono::milliseconds;

constexpr int kUsage = 2;
constexpr const char* kNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// `10s`, `500ms`, `2m`.
const CLI::AsNumberWithUnit& duration() {
  static const CLI::AsNumberWithUnit out(
      std::map<std::string, std::int64_t>{{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}},
      CLI::AsNumberWithUnit::UNIT_REQUIRED, "DURATION");
  return out;
}

struct Raw {
  std::string bindings, resolve = "application";
  consumer::AgentAccess agent;
  std::int64_t timeout = 60'000, interval = 10'000;
};

void add_options(CLI::App& app, Settings& out, Raw& raw) {
  app.add_option("--bindings", raw.bindings, "SLOT=BACKEND,… or an object in JSON or YAML")
      ->envname("BACKEND_BINDINGS");
  app.add_option("--output", out.output, "the file to write")->envname("BACKEND_CONFIG_PATH")->capture_default_str();
  app.add_option("--agent", raw.agent.target, "driftd's agent: unix:/PATH or HOST:PORT (TLS)")->envname("DRIFTD_AGENT");
  app.add_option("--agent-ca", raw.agent.ca, "PEM file of the agent's authority; default: the system's");
  app.add_option("--agent-cert", raw.agent.cert, "PEM file that the resolver shows to the agent");
  app.add_option("--agent-key", raw.agent.key, "its key");
  app.add_option("--agent-token-file", raw.agent.token_file, "file with a bearer token for the agent");
  app.add_option("--resolve-by", raw.resolve, "who reads ${file:…} and ${env:…} of the agent's configuration")
      ->check(CLI::IsMember({"application", "agent"}))
      ->capture_default_str();
  app.add_option("--namespace", out.space, "of the Secrets that bindings name; default: the Pod's")
      ->envname("POD_NAMESPACE");
  app.add_option("--service-binding-root", out.service_bindings, "folder of what servicebinding.io mounts")
      ->envname("SERVICE_BINDING_ROOT");
  app.add_option("--kube-server", out.kube.server, "https://HOST:PORT; default: the Pod's API server");
  app.add_option("--kube-token-file", out.kube.token_file, "default: that of the Pod's ServiceAccount");
  app.add_option("--kube-ca", out.kube.ca_file, "default: that of the Pod's ServiceAccount");
  app.add_option("--timeout", raw.timeout, "how long it waits for all required bindings; 60s")->transform(duration());
  app.add_flag("--follow", out.follow, "a sidecar: keep the file true until SIGTERM");
  app.add_option("--interval", raw.interval, "with --follow: everything is resolved again so often; 10s")
      ->transform(duration());
  app.add_option("--log-level", out.log_level)->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}));
  app.add_option("--log-format", out.log_format)->check(CLI::IsMember({"text", "json"}));
}

/// Throws CLI::ValidationError.
void complete(Settings& out, const Raw& raw) {
  auto bindings = parse_bindings(raw.bindings);
  if (!bindings) throw CLI::ValidationError("--bindings", bindings.error().message);
  out.bindings = std::move(*bindings);
  if (raw.timeout < 0 || raw.interval < 100) {
    throw CLI::ValidationError("--interval", "expected 100ms or more, and --timeout not below 0");
  }
  out.timeout = milliseconds(raw.timeout);
  out.interval = milliseconds(raw.interval);
  if (raw.resolve == "agent") out.resolved_by = consumer::ResolvedBy::agent;
  const auto named =
      std::find_if(out.bindings.begin(), out.bindings.end(), [](const Binding& one) { return !one.backend.empty(); });
  if (!raw.agent.target.empty()) out.agent = raw.agent;
  if (named != out.bindings.end() && !out.agent) {
    throw CLI::ValidationError("--agent", "the slot " + named->slot +
                                              " is bound to a backend of the agent's registry; say where the agent is: "
                                              "--agent unix:/PATH or HOST:PORT, or $DRIFTD_AGENT");
  }
  if (out.agent)
    out.agent->breaker_max = std::max(out.agent->breaker_first, std::min(milliseconds(5'000), out.interval));
  if (out.output.empty()) throw CLI::ValidationError("--output", "expected a path, found nothing");
  if (out.space.empty()) {
    std::ifstream file(kNamespaceFile);
    std::getline(file, out.space);
  }
  const bool mounted =
      std::any_of(out.bindings.begin(), out.bindings.end(), [](const Binding& one) { return !one.mounted.empty(); });
  if (mounted && !out.service_bindings.starts_with('/')) {
    throw CLI::ValidationError("--service-binding-root",
                               "a binding names a `serviceBinding`; expected $SERVICE_BINDING_ROOT, an absolute path");
  }
  const bool secrets =
      std::any_of(out.bindings.begin(), out.bindings.end(), [](const Binding& one) { return !one.secret.empty(); });
  if (secrets && out.space.empty()) {
    throw CLI::ValidationError("--namespace", "a binding names a Secret, and this is no Pod: say in which namespace");
  }
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app("Writes the file of backends for the application of its Pod: where they are and how to log in.",
               "driftd-resolver");
  CommandLine out;
  Settings settings;
  Raw raw;
  add_options(app, settings, raw);
  try {
    app.parse(argc, argv);
    complete(settings, raw);
    out.settings = std::move(settings);
  } catch (const CLI::Success& shown) {
    out.exit_code = app.exit(shown);
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "driftd-resolver: %s\n", error.what());
    out.exit_code = kUsage;
  }
  return out;
}

}  // namespace driftd::resolver
