// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace google::protobuf {
class Message;
}

namespace driftd::proto {

/// Returns the bytes of a message. They are the same each time, because members of maps are sorted: one event id never
/// has two contents.
std::string serialise(const google::protobuf::Message& message);

}  // namespace driftd::proto
