// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "check/listing.hpp"

namespace driftd::check {

/// A listing in memory that all children of this process share: one child writes its listing, later ones compare with
/// it. Only one may write at a time.
class SharedListing {
 public:
  SharedListing();  ///< throws CheckNotMade if the memory cannot be mapped
  ~SharedListing();
  SharedListing(const SharedListing&) = delete;
  SharedListing& operator=(const SharedListing&) = delete;
  void write(const Listing& listing);  ///< throws CheckNotMade if it does not fit
  Listing read() const;

 private:
  char* at_;
};

}  // namespace driftd::check
