// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {

#ifdef DRIFTD_GRPC
constexpr bool kGrpc = true;
#else
constexpr bool kGrpc = false;
#endif

void add_version(CLI::App& app, Context& context) {
  app.add_subcommand("version", "the version of this binary")->callback([&context] {
    if (context.json()) {
      context.out() << core::render(
                           core::Value::Object{{"version", core::Value(DRIFTD_VERSION)}, {"grpc", core::Value(kGrpc)}})
                    << "\n";
    } else {
      context.out() << "driftd " << DRIFTD_VERSION << (kGrpc ? "" : " (built without gRPC)") << "\n";
    }
  });
}

}  // namespace driftd::cli
