// SPDX-License-Identifier: Apache-2.0
// Group schema, part 2, group_schema_calls.cpp: what a provider pushes during its calls.
#pragma once

#include "check/check.hpp"

namespace driftd::check {

void bodies(const Subject& subject);
void text(const Subject& subject);
void declared_attributes(const Subject& subject);
void unread(const Subject& subject);
void settings_fuzz(const Subject& subject);
void statuses(const Subject& subject);
void metrics(const Subject& subject);
void upgrade(const Subject& subject);

}  // namespace driftd::check
