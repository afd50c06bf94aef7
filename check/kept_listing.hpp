// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "check/listing.hpp"

namespace driftd::check {

/// Memory that children of this process share: one writes what it listed, later ones compare. One writer at a time.
class KeptListing {
 public:
  KeptListing();  ///< NotMade without memory
  ~KeptListing();
  KeptListing(const KeptListing&) = delete;
  KeptListing& operator=(const KeptListing&) = delete;
  void keep(const Listing& listing);  ///< NotMade when it does not fit
  Listing read() const;

 private:
  char* at_;
};

}  // namespace driftd::check
