// SPDX-License-Identifier: Apache-2.0
// Of driftd-grpc only: without_grpc.cpp is its counterpart in driftd.
#include <sys/stat.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "app/change_log.hpp"
#include "base/escape.hpp"
#include "base/log.hpp"
#include "cli/exit_codes.hpp"
#include "grpc/change_log_server.hpp"
#include "sinks/file/log_file.hpp"

namespace driftd::app {
namespace {

using cli::kConfig;
using cli::kUnreachable;
constexpr std::string_view kUnix = "unix://";

/// Lines in a file or on stdout. What a failed call left behind is sent again by the agent, so it is owed to nobody.
class LineOutput final : public rpc::ChangeLogOutput {
 public:
  explicit LineOutput(sinks::FileSettings settings) : file_(std::move(settings)) {}
  Status open() { return file_.open(); }
  Status write(const std::vector<std::string>& lines) override {
    if (file_.lost()) file_.begin_again();
    for (const auto& line : lines) DRIFTD_CHECK(file_.write(line));
    return file_.sync();
  }

 private:
  sinks::LogFile file_;
};

int give_up(const Error& error) {
  std::fprintf(stderr, "driftd: changelog-sidecar: %s\n", escaped(error.message).c_str());
  return error.code == Code::invalid || error.code == Code::denied ? kConfig : kUnreachable;
}

Result<rpc::ChangeLogServerSettings> settings_of(const SidecarOptions& options) {
  rpc::ChangeLogServerSettings out;
  out.cert = options.cert;
  out.key = options.key;
  out.client_ca = options.client_ca;
  out.max_entry_bytes = static_cast<std::size_t>(options.max_entry_bytes);
  if (options.listen.starts_with(kUnix)) {
    out.socket = options.listen.substr(kUnix.size());
    if (out.socket.starts_with('/')) return out;
  } else if (options.listen.find("://") == std::string::npos && options.listen.rfind(':') != std::string::npos) {
    out.address = options.listen;
    return out;
  }
  return fail(Code::invalid, "--listen is '" + options.listen +
                                 "'; expected unix:///PATH with an absolute path, or HOST:PORT with --tls-cert, "
                                 "--tls-key and --tls-client-ca");
}

Status serve(const SidecarOptions& options) {
  DRIFTD_TRY(rpc::ChangeLogServerSettings settings, settings_of(options));
  DRIFTD_CHECK(rpc::check_change_log_server(settings));
  sinks::FileSettings file;
  if (options.output != "-") file.path = options.output;
  file.rotate_bytes = options.rotate_bytes;
  file.keep = options.keep;
  LineOutput output(std::move(file));
  DRIFTD_CHECK(output.open());
  asio::io_context core;
  DRIFTD_TRY(const auto server, rpc::ChangeLogServer::open(std::move(settings), output, core.get_executor()));
  asio::signal_set ending(core, SIGTERM, SIGINT);
  ending.async_wait([&](const boost::system::error_code&, int) { server->stop(); });
  DRIFTD_CHECK(server->start());
  log::room("sidecar").info("writes change logs that arrive at {} to {}", options.listen,
                            options.output == "-" ? "stdout" : options.output);
  core.run();
  log::room("sidecar").info("stopped");
  return {};
}

}  // namespace

int run_change_log_sidecar(const SidecarOptions& options) {
  ::umask(0027);  // who may read the file is up to its folder and its group
  std::signal(SIGPIPE, SIG_IGN);
  log::configure({});
  const Status served = serve(options);
  return served ? 0 : give_up(served.error());
}

}  // namespace driftd::app
