// SPDX-License-Identifier: Apache-2.0
// Attributes back to statements: the inverse of mapping.hpp. Pure. Throws common::CannotSet for what no statement sets.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"

namespace driftd::postgres {

/// How a name and a text stand in a statement: libpq's, of the connection that will run it.
struct Quote {
  std::function<std::string(const std::string&)> identifier, literal;
};

/// A statement and the one that takes it back.
struct Statement {
  std::string sql, undo;
};
using Statements = std::vector<Statement>;

/// Returns the right side of SET: `'64MB'`, or for a list of names (`search_path`) one literal for each of them.
std::string guc_literals(const Quote& quote, const std::string& name, const std::string& value);
/// Returns a GUC's name as it stands in a statement: `"app"."user"` for `app.user`.
std::string guc_name(const Quote& quote, const std::string& name);
/// Returns the text that means the attribute of a `setting`: `bytes` 1048576 is `1048576B`. The inverse of typed().
std::string guc_text(const std::string& attribute, const nlohmann::json& value);

/// Return the statements that put a role, a database back. `now` is the body as it is. They run in one transaction.
Statements role_statements(const Quote& quote, const sdk::Apply& request, const nlohmann::json& now, int version);
Statements database_statements(const Quote& quote, const sdk::Apply& request, const nlohmann::json& now);

/// Returns REVOKE and GRANT that make `wanted` of `now`, both lists of {grantee, privilege, grantable}. `object` is
/// what they are on, quoted: `DATABASE "orders"`.
Statements grant_statements(const Quote& quote, const std::string& object, const nlohmann::json& now,
                            const nlohmann::json& wanted);

}  // namespace driftd::postgres
