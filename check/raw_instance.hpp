// SPDX-License-Identifier: Apache-2.0
// Calls a provider on the current thread, with inputs placed where a mistake shows. There is no watchdog here: the
// runner's time limit for the check is the only one.
#pragma once

#include <functional>
#include <string>

#include "check/check.hpp"
#include "check/listing.hpp"
#include "check/negotiate.hpp"
#include "check/pages.hpp"
#include "check/subject.hpp"

namespace driftd::check {

/// One instance of the provider. Every call runs on the caller's thread.
class RawInstance {
 public:
  RawInstance(const Subject& subject, InputLayout layout);
  ~RawInstance();  ///< closes the instance if it is open

  CallTrace open(const std::string& settings_json, const CallFaults& faults = {});
  void open();  ///< opens with the subject's settings; throws CheckNotMade if that fails
  CallTrace refresh(const CallArguments& arguments = {}, const CallFaults& faults = {});
  CallTrace read(const std::vector<Identity>& ids, const CallFaults& faults = {});
  CallTrace health();
  CallTrace watch(const CallFaults& faults);  ///< returns when the watch ends; CallFaults.hook can cancel it
  CallTrace diff(const Identity& id);
  CallTrace schema(const std::string& what);
  const void* query(const std::string& id, std::uint32_t revision);
  void wake();
  void close();

  const Provider& provider() const { return provider_; }
  bool opened() const { return opened_; }
  std::size_t written_behind() const { return written_behind_; }  ///< of all results, and of `out` when open fails

 private:
  template <class F>
  CallTrace call(Function function, const CallFaults& faults, F body);

  const Subject& subject_;
  const InputLayout layout_;
  const Provider& provider_;
  const std::shared_ptr<const Declarations> declared_;
  driftd_instance self_ = nullptr;
  bool opened_ = false;
  std::size_t written_behind_ = 0;
};

/// Refreshes twice and returns the listing. Throws CheckNotMade if the two differ.
Listing plain_listing(RawInstance& instance);
/// Throws RuleBroken, with `when` in its text, unless `found` succeeded and lists the same as `expected`.
void expect_same(const Provider& provider, const Listing& expected, const CallTrace& found, const std::string& when);

/// Calls open, schema, refresh, read (known and unknown identities, a garbage cursor), health, diff, query, wake and
/// close, and runs `after` with the name of each call. Throws CheckNotMade if open fails, after the calls that need no
/// instance.
void call_every_function(RawInstance& instance, const std::function<void(const std::string&)>& after);

}  // namespace driftd::check
