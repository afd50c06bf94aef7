// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace google::protobuf {
class Message;
}

namespace driftd::proto {

/// The bytes of a message, the same ones each time: members of maps are sorted. One id never has two contents.
std::string serialise(const google::protobuf::Message& message);

}  // namespace driftd::proto
