// SPDX-License-Identifier: Apache-2.0
#include "operator/settings.hpp"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace driftd::op {
namespace {

using std::chrono::milliseconds;

constexpr int kUsage = 2;

/// `15s`, `500ms`, `10m`.
const CLI::AsNumberWithUnit& duration() {
  static const CLI::AsNumberWithUnit out(
      std::map<std::string, std::int64_t>{{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"min", 60'000}, {"h", 3'600'000}},
      CLI::AsNumberWithUnit::UNIT_REQUIRED, "DURATION");
  return out;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string out;
  std::getline(file, out);
  return out;
}

/// A Pod's name is unique at one time, but a Pod that restarts keeps it; so a random part is added.
std::string own_identity() {
  std::string name = environment("POD_NAME");
  if (name.empty()) {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    name = host;
  }
  char random[16];
  std::snprintf(random, sizeof random, "_%08x", std::random_device{}());
  return name + random;
}

struct Raw {
  std::string kubeconfig, context, agent, agent_ca, agent_cert, agent_key, agent_token_file;
  std::int64_t lease_duration = 15'000, renew_deadline = 10'000, retry_period = 2'000, reconciliation_timeout = 600'000,
               scheduler_interval = 30'000, cleanup_interval = 300'000;
};

void add_options(CLI::App& app, Settings& out, Raw& raw) {
  app.add_option("--kubeconfig", raw.kubeconfig,
                 "kubeconfig file; default: $KUBECONFIG, else the Pod's ServiceAccount");
  app.add_option("--context", raw.context, "context of the kubeconfig; default: its current-context");
  app.add_option("--namespace", out.space, "the operator's own namespace; default: $POD_NAMESPACE, else the Pod's");
  app.add_option("--watch-namespaces", out.limits.namespaces,
                 "namespaces in which PrismBackends may name objects; default: all")
      ->delimiter(',');
  app.add_option("--share-credentials-with", out.limits.share_with,
                 "namespaces into which credentials of PrismBackends may be copied for PrismPatterns; default: none")
      ->delimiter(',');
  app.add_option("--cluster-domain", out.limits.cluster_domain, "of the names of Services")->capture_default_str();
  app.add_flag("--helm-discovery,!--no-helm-discovery", out.discovers_releases,
               "make PrismBackends of the Helm releases of known charts")
      ->capture_default_str();
  app.add_flag("--patterns,!--no-patterns", out.deploys_patterns, "make Deployments of PrismPatterns")
      ->capture_default_str();
  app.add_option("--agent", raw.agent,
                 "driftd's agent: unix:/PATH or HOST:PORT (TLS); default: none, nothing is synced");
  app.add_option("--agent-ca", raw.agent_ca, "PEM file of the agent's authority; default: the system's");
  app.add_option("--agent-cert", raw.agent_cert, "PEM file that the operator shows to the agent");
  app.add_option("--agent-key", raw.agent_key, "its key");
  app.add_option("--agent-token-file", raw.agent_token_file, "file with a bearer token for the agent");
  app.add_flag("--leader-elect,!--no-leader-elect", out.elects, "act only while it holds the Lease")
      ->capture_default_str();
  app.add_option("--lease", out.lease, "name of the Lease")->capture_default_str();
  app.add_option("--lease-duration", raw.lease_duration, "how long others wait for a silent leader; 15s")
      ->transform(duration());
  app.add_option("--renew-deadline", raw.renew_deadline, "a leader that did not renew for so long ends; 10s")
      ->transform(duration());
  app.add_option("--retry-period", raw.retry_period, "between two attempts; 2s")->transform(duration());
  app.add_option("--workers", out.controllers.workers, "objects of a kind that are reconciled at the same time")
      ->capture_default_str();
  app.add_option("--reconciliation-timeout", raw.reconciliation_timeout, "10m")->transform(duration());
  app.add_option("--max-retry-attempts", out.controllers.max_retry_attempts, "in a row; then the object is Failed")
      ->capture_default_str();
  app.add_option("--scheduler-interval", raw.scheduler_interval, "between two resyncs; 30s")->transform(duration());
  app.add_option("--cleanup-interval", raw.cleanup_interval,
                 "how often objects are looked for whose Helm release is gone; 300s")
      ->transform(duration());
  app.add_option("--listen", out.listen, "HOST:PORT of /metrics, /healthz and /readyz; default: none");
  app.add_option("--log-level", out.log_level)->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}));
  app.add_option("--log-format", out.log_format)->check(CLI::IsMember({"text", "json"}));
}

/// Throws CLI::ValidationError or sdk::Failure.
void complete(Settings& out, const Raw& raw) {
  out.lease_times = {milliseconds(raw.lease_duration), milliseconds(raw.renew_deadline),
                     milliseconds(raw.retry_period)};
  if (out.lease_times.renew >= out.lease_times.duration || out.lease_times.retry >= out.lease_times.renew ||
      raw.retry_period <= 0) {
    throw CLI::ValidationError("--lease-duration", "expected lease-duration > renew-deadline > retry-period > 0");
  }
  out.controllers.reconciliation_timeout = milliseconds(raw.reconciliation_timeout);
  out.controllers.scheduler_interval = milliseconds(raw.scheduler_interval);
  out.controllers.cleanup_interval = milliseconds(raw.cleanup_interval);
  if (const auto good = controller::check(out.controllers); !good) {
    throw CLI::ValidationError("controllers", good.error());
  }
  if (!raw.agent.empty()) {
    const bool socket = raw.agent.starts_with("unix:/");
    if (!socket && (raw.agent.find("://") != raw.agent.npos || raw.agent.find(':') == raw.agent.npos)) {
      throw CLI::ValidationError("--agent", "expected unix:/PATH or HOST:PORT; found " + raw.agent);
    }
    if (raw.agent_cert.empty() != raw.agent_key.empty()) {
      throw CLI::ValidationError("--agent-cert", "--agent-cert and --agent-key belong together");
    }
    out.agent = AgentAccess{raw.agent, raw.agent_ca, raw.agent_cert, raw.agent_key, raw.agent_token_file};
  } else if (!raw.agent_ca.empty() || !raw.agent_cert.empty() || !raw.agent_token_file.empty()) {
    throw CLI::ValidationError("--agent", "--agent-ca, --agent-cert and --agent-token-file need --agent");
  }
  std::string kubeconfig = raw.kubeconfig.empty() ? environment("KUBECONFIG") : raw.kubeconfig;
  out.connection.user_agent = "driftd-operator/0.1";
  if (kubeconfig.empty()) {
    kube::use_service_account(out.connection);
  } else {
    const std::string where = raw.kubeconfig.empty() ? "$KUBECONFIG" : "--kubeconfig";
    kube::KubeconfigUse use;
    use.folder = std::filesystem::absolute(kubeconfig).parent_path();
    use.context = raw.context;
    use.where = where;
    kube::apply_kubeconfig(out.connection, kube::read_kubeconfig(kubeconfig, where), use);
  }
  if (out.space.empty()) out.space = environment("POD_NAMESPACE");
  if (out.space.empty()) out.space = first_line(std::string(kube::kServiceAccount) + "/namespace");
  if (out.space.empty()) {
    throw CLI::ValidationError("--namespace", "this is no Pod: say in which namespace the operator keeps its Lease");
  }
  if (out.identity.empty()) out.identity = own_identity();
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app("Keeps PrismBackends true: what they name exists, their endpoint, and that driftd's agent knows them.",
               "driftd-operator");
  CommandLine out;
  Settings settings;
  settings.controllers.workers = 4;
  Raw raw;
  add_options(app, settings, raw);
  try {
    app.parse(argc, argv);
    complete(settings, raw);
    out.settings = std::move(settings);
  } catch (const CLI::Success& shown) {
    out.exit_code = app.exit(shown);
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "driftd-operator: %s\n", error.what());
    out.exit_code = kUsage;
  } catch (const sdk::Failure& failure) {
    std::fprintf(stderr, "driftd-operator: %s\n", failure.what());
    out.exit_code = kUsage;
  }
  return out;
}

}  // namespace driftd::op
