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

/// dlopen and dlsym, nothing else; NotMade, with the id of the check that says why.
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
Answer negotiate(const Subject& subject, const Offer& offer = {}, Manner manner = {});

/// One instance, called on the thread that calls here.
class Bare {
 public:
  Bare(const Subject& subject, Manner manner);
  ~Bare();  ///< closes it

  Said open(const std::string& settings_json, const Treatment& treatment = {});
  void open();  ///< with the subject's settings; NotMade unless that works
  Said refresh(const Ask& ask = {}, const Treatment& treatment = {});
  Said read(const std::vector<Identity>& ids, const Treatment& treatment = {});
  Said health();
  Said watch(const Treatment& treatment);  ///< until it ends; see Treatment.hook
  Said diff(const Identity& id);
  Said schema(const std::string& what);
  const void* query(const std::string& id, std::uint32_t revision);
  void wake();
  void close();

  const Provider& provider() const { return provider_; }
  bool opened() const { return opened_; }
  std::size_t written_behind() const { return written_behind_; }  ///< of all results, and of `out` of a failed open

 private:
  template <class F>
  Said call(Function function, const Treatment& treatment, F body);

  const Subject& subject_;
  const Manner manner_;
  const Provider& provider_;
  const std::shared_ptr<const Declared> declared_;
  driftd_instance self_ = nullptr;
  bool opened_ = false;
  std::size_t written_behind_ = 0;
};

/// The listing that two plain refreshes agree on; NotMade when there is none.
Listing plain_listing(Bare& bare);
/// Broken with `when` unless `found` is OK and gives the same.
void expect_same(const Provider& provider, const Listing& expected, const Said& found, const std::string& when);

/// open, schemas, refresh, read of known and unknown identities, garbage cursor, health, diff, query, wake, close; runs
/// `after` behind each with its name. What cannot be opened is driven as far as it goes.
void whole_script(Bare& bare, const std::function<void(const std::string&)>& after);

}  // namespace driftd::check
