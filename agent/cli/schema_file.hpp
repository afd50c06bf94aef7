// SPDX-License-Identifier: Apache-2.0
// Schemas from files, without an agent: those of users, of examples/schemas, and of the providers of this package.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/client.hpp"
#include "core/value/schema.hpp"

namespace driftd::cli {

/// Reads a schema: a file with a driftd-schema/1 document, or a name such as `kafka/topic` or `aws/aws_s3_bucket` of a
/// schema that the package has. kUsage with the file and the place in it if there is none or it is not valid.
Outcome<std::shared_ptr<const core::KindSchema>> read_schema(const std::string& file_or_name);

/// Returns the names of the schemas that the package has, sorted. Empty if there are none.
std::vector<std::string> packaged_schemas();

/// Reads a file whole. kUsage if it cannot be read.
Outcome<std::string> read_text(const std::string& file);

}  // namespace driftd::cli
