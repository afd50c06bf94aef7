// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd::postgres {

/// A GUC's value as pg_settings shows it: `setting` in the GUC's base unit (`8kB`, `ms`, ... or none).
struct Guc {
  std::string setting, unit, vartype;
};

/// The attribute that carries a GUC: `flag`, `number`, `bytes`, `duration` or `value`, and its raw value. Memory is in
/// bytes and time in milliseconds whatever the base unit, so 16384 pages, 128MB and 131072kB are one value. Negative
/// values are keywords of the GUC (off, inherit) and stay as they are.
struct TypedGuc {
  std::string attribute;
  std::string json;  ///< the value as JSON text; numbers keep the digits that the server sent
};
TypedGuc typed(const Guc& guc);

/// Returns true if the text of a configuration file means the value that is in force.
bool same_value(std::string_view file_text, const Guc& in_force);

/// Returns true if values of this GUC are secrets: conninfo strings, pass phrases, and what extensions and applications
/// put into placeholders (`app.jwt_secret`).
bool secret_guc(std::string_view name);

}  // namespace driftd::postgres
