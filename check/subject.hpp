// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include "check/check.hpp"
#include "check/host.hpp"
#include "check/running_call.hpp"
#include "core/ports/session.hpp"
#include "ipc/messages.hpp"

namespace driftd::check {

/// The provider, loaded into this process once and never unloaded. Throws CheckNotMade, with the id of the check that
/// explains it, if the provider cannot be loaded or its answers cannot be parsed. [any thread]
class Provider {
 public:
  static const Provider& load(const Subject& subject);

  driftd_provider_table table{};  ///< of full size: slots that the provider lacks return UNSUPPORTED
  // Call the provider's `describe` and `schema`. Throw RuleBroken if they do not return within kGrace.
  CallTrace describe() const;
  CallTrace schema(const std::string& what) const;
  /// The provider's description, as the agent parses it.
  const core::ProviderInfo& info() const;
  const ipc::LoadAnswer& loaded() const;
  /// Returns the extension's table, or null. Copy it by its size member (copy_struct).
  const void* query(const char* id, std::uint32_t revision) const;
  /// Returns the kinds and metrics of describe, and the given tokens.
  std::shared_ptr<const Declarations> declared(const std::map<std::string, std::string>& secrets) const;
};

/// The arguments of a call.
struct CallArguments {
  std::string cursor;              ///< refresh, watch
  std::vector<std::string> kinds;  ///< refresh; empty means all
  std::vector<Identity> ids;       ///< read
  bool full = false;               ///< refresh: DRIFTD_REFRESH_FULL
};

/// One opened instance. The destructor closes it unless a call never returned.
class Instance {
 public:
  explicit Instance(const Subject& subject);  ///< throws CheckNotMade if it cannot be opened
  ~Instance();
  Instance(Instance&&) noexcept = default;
  Instance& operator=(Instance&&) = delete;

  /// Opens an instance with other settings. `first` is the trace of open; `second` is null unless open succeeded.
  static std::pair<CallTrace, std::unique_ptr<Instance>> open(const Subject& subject, const std::string& settings_json,
                                                              const std::map<std::string, std::string>& secrets,
                                                              const CallFaults& faults = {});

  RunningCall start(Function function, const CallArguments& arguments = {}, CallFaults faults = {}) const;
  /// Starts `body`, which may call any function of an extension.
  RunningCall start(Function function, CallFaults faults, RunningCall::Body body) const;
  CallTrace refresh(const CallArguments& arguments = {}, const CallFaults& faults = {}) const {
    return start(Function::refresh, arguments, faults).wait();
  }
  CallTrace read(const std::vector<Identity>& ids, const CallFaults& faults = {}) const {
    return start(Function::read, CallArguments{{}, {}, ids}, faults).wait();
  }
  CallTrace health(const CallFaults& faults = {}) const { return start(Function::health, {}, faults).wait(); }
  CallTrace diff(const driftd_diff_args& args) const;
  void wake() const;
  /// Throws RuleBroken if close does not return within kGrace. No other function may be called afterwards.
  void close();

  driftd_instance raw() const;
  const Provider& provider() const;

 private:
  struct Opened;
  explicit Instance(std::shared_ptr<Opened> opened);
  std::shared_ptr<Opened> opened_;
};

}  // namespace driftd::check
