// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "terraform/discover.hpp"
#include "terraform/emission.hpp"
#include "terraform/source.hpp"

namespace driftd::terraform {

/// Backends that a state holds, kept until it changes. Any thread.
class DiscoveryRun {
 public:
  /// Pushes each backend; complete unless one could not be told. Throws as Source::fetch and read_head.
  sdk::Discovery run(sdk::Call& call, const sdk::Discoverer& to, Source& source, const Settings& settings) {
    const Fetched fetched = source.fetch(call, known());
    const std::lock_guard lock(mutex_);
    if (!fetched.unchanged) read(fetched, settings);
    for (const auto& diagnostic : diagnostics_) call.diag(diagnostic);
    for (auto& backend : backends_) {
      if (fetched.sent_ns != 0) backend.observed_ns = fetched.sent_ns;
      to.push(backend);
    }
    return {diagnostics_.empty(), 60'000};  // the host asks at once after a refresh that found something new
  }

 private:
  class Finder final : public Contents {
   public:
    Finder(DiscoveryRun& to, const Reading& reading, const Settings& settings) : to_(to), reading_(reading), settings_(settings) {}
    bool instance(const Instance& instance) override {
      std::string why;
      auto backend = backend_of(reading_, instance, settings_, why);
      if (backend && !names_.insert(backend->name).second) why = "two resources are labelled as backend " + backend->name;
      if (!why.empty()) {
        to_.diagnostics_.push_back({DRIFTD_INVALID, "instance", instance.id(), {}, why});
      } else if (backend) {
        to_.backends_.push_back(std::move(*backend));
      }
      return true;
    }
    bool output(const std::string&, const nlohmann::json&) override { return true; }

   private:
    DiscoveryRun& to_;
    const Reading& reading_;
    const Settings& settings_;
    std::set<std::string> names_;
  };

  std::string known() const {
    const std::lock_guard lock(mutex_);
    return stamp_;
  }
  void read(const Fetched& fetched, const Settings& settings) {
    stamp_.clear();
    backends_.clear();
    diagnostics_.clear();
    const Reading reading = read_fetched(fetched, {});
    if (reading.head.encrypted) throw sdk::Failure(DRIFTD_UNSUPPORTED, "the state is encrypted by OpenTofu; its backends are not known");
    Finder finder(*this, reading, settings);
    read_contents(fetched.state, reading.head, finder);
    stamp_ = fetched.stamp;
  }

  mutable std::mutex mutex_;
  std::string stamp_;
  std::vector<sdk::Backend> backends_;
  std::vector<sdk::Diagnostic> diagnostics_;
};

}  // namespace driftd::terraform
