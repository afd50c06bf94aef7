// SPDX-License-Identifier: Apache-2.0
#include "store/checksums.hpp"

namespace driftd::store {

Status sign(Connection& db) {
  DRIFTD_CHECK(db.statement("UPDATE backend SET crc = " DRIFTD_CRC_BACKEND " WHERE crc IS NULL").run());
  return db.statement("UPDATE sink SET crc = " DRIFTD_CRC_SINK " WHERE crc IS NULL").run();
}

Error wrong_checksum(const std::string& what) {
  return {Code::corrupt,
          "store: " + what + " does not match its checksum: the disk, or somebody, changed it; check the disk"};
}

}  // namespace driftd::store
