// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "check/listing.hpp"

namespace driftd::check {

/// Memory that children of this process share: one writes what it listed, later ones compare. One writer at a time.
class SharedListing {
 public:
  SharedListing();  ///< CheckNotMade without memory
  ~SharedListing();
  SharedListing(const SharedListing&) = delete;
  SharedListing& operator=(const SharedListing&) = delete;
  void write(const Listing& listing);  ///< CheckNotMade when it does not fit
  Listing read() const;

 private:
  char* at_;
};

}  // namespace driftd::check
