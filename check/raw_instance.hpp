// SPDX-License-Identifier: Apache-2.0
// Driving a provider on this thread with inputs that lie where they hurt. No watchdog: the runner's limit is one.
#pragma once

#include <functional>
#include <string>

#include "check/check.hpp"
#include "check/listing.hpp"
#include "check/pages.hpp"
#include "check/subject.hpp"

namespace driftd::check {

using Entry = decltype(&driftd_provider_v1);

/// dlopen and dlsym, nothing else; CheckNotMade, with the id of the check that says why.
Entry find_entry(const Subject& subject);

/// What the entry answered. `table` is the provider's own, as large as it says.
struct Answer {
  driftd_status status = DRIFTD_INTERNAL;
  std::uint32_t minor_built = 0, minor_needed = 0;
  const driftd_provider_table* table = nullptr;
  std::size_t written_behind = 0;  ///< bytes behind driftd_accept that changed
};
struct Offer {
  std::uint32_t minor_max = DRIFTD_ABI_MINOR;
  std::uint32_t in_process = 0;
  std::uint32_t accept_size = sizeof(driftd_accept);
  const driftd_host_table* host = nullptr;  ///< nullptr: the adversarial one
};
Answer negotiate(const Subject& subject, const Offer& offer = {}, InputLayout layout = {});

/// One instance, called on the thread that calls here.
class RawInstance {
 public:
  RawInstance(const Subject& subject, InputLayout layout);
  ~RawInstance();  ///< closes it

  CallTrace open(const std::string& settings_json, const CallFaults& faults = {});
  void open();  ///< with the subject's settings; CheckNotMade unless that works
  CallTrace refresh(const CallArguments& arguments = {}, const CallFaults& faults = {});
  CallTrace read(const std::vector<Identity>& ids, const CallFaults& faults = {});
  CallTrace health();
  CallTrace watch(const CallFaults& faults);  ///< until it ends; see CallFaults.hook
  CallTrace diff(const Identity& id);
  CallTrace schema(const std::string& what);
  const void* query(const std::string& id, std::uint32_t revision);
  void wake();
  void close();

  const Provider& provider() const { return provider_; }
  bool opened() const { return opened_; }
  std::size_t written_behind() const { return written_behind_; }  ///< of all results, and of `out` of a failed open

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

/// The listing that two plain refreshes agree on; CheckNotMade when there is none.
Listing plain_listing(RawInstance& instance);
/// RuleBroken with `when` unless `found` is OK and gives the same.
void expect_same(const Provider& provider, const Listing& expected, const CallTrace& found, const std::string& when);

/// open, schemas, refresh, read of known and unknown identities, garbage cursor, health, diff, query, wake, close; runs
/// `after` behind each with its name. What cannot be opened is driven as far as it goes.
void call_every_function(RawInstance& instance, const std::function<void(const std::string&)>& after);

}  // namespace driftd::check
