// SPDX-License-Identifier: Apache-2.0
// Normal forms of the value types; parts of normalise() (schema.hpp). No other room includes this.
#pragma once

#include <string>
#include <string_view>

#include "core/value/schema.hpp"

namespace driftd::core::types {

// Limits for one attribute; one that exceeds them is unknown. Two comparisons run at a time, and an agent has 64 MiB.
inline constexpr std::size_t kMaxNodes = 100'000;    ///< of a JSON or YAML text, its aliases expanded
inline constexpr std::size_t kMaxJson = 2u << 20;    ///< bytes of a JSON text
inline constexpr std::size_t kMaxTree = 8u << 20;    ///< bytes of a YAML text as a tree, its aliases expanded
inline constexpr std::size_t kMaxElements = 20'000;  ///< lines, PEM blocks, keys, parts of `a:1,b:2`

/// Returns `budget`: the text may be of its type, but reading it would cost too much, so the attribute is unknown. A
/// text that is not of its type is `invalid` instead and is compared as it is.
tl::unexpected<Error> too_large(std::string what);

/// Returns a scalar as text: strings as they are, numbers by token, booleans as words. Returns `invalid` for null,
/// arrays and objects.
Result<std::string> scalar_text(const Value& value);
tl::unexpected<Error> type_mismatch(std::string_view type, std::string_view found);
std::string lower(std::string_view text);       ///< ASCII
std::string_view strip(std::string_view text);  ///< white space at both ends
bool all_digits(std::string_view text);         ///< at least one

// Each of these parses a scalar's text and returns canonical JSON text, or `invalid` if the text is not of its type.
Result<std::string> decimal(std::string_view text);  ///< exact: 1.0 = 1 = 1e0; plain digits up to 40 places
Result<std::string> integer(std::string_view text);  ///< a decimal without fraction
Result<std::string> percent(std::string_view text, std::string_view unit);
Result<std::string> quantity(std::string_view text);                      ///< Kubernetes quantity, exact rational
Result<std::string> bytes(std::string_view text, std::string_view unit);  ///< in bytes
/// In nanoseconds. `calendar`: `2w` and ISO months and years, too; those are counted apart.
Result<std::string> duration(std::string_view text, std::string_view unit, bool calendar = false);
Result<std::string> timestamp(std::string_view text, std::string_view unit);  ///< UTC, ns since the epoch
Result<std::string> version(std::string_view text, std::string_view unit);
/// `idn`: internationalised names are read, too.
Result<std::string> host(std::string_view text, bool idn = false);
/// `unit`: the port of an endpoint without one, or a scheme that has a usual port (`redis`).
Result<std::string> endpoint(std::string_view text, std::string_view unit);
Result<std::string> url(std::string_view text);
Result<std::string> inet(std::string_view text);
Result<std::string> cidr(std::string_view text, bool netmask = false);  ///< `netmask`: `/255.0.0.0`, too
Result<std::string> pem(std::string_view text);                         ///< list of DER fingerprints in order
Result<std::string> ssh_key(std::string_view text);                     ///< list of key fingerprints with their options
Result<std::string> properties(std::string_view text);                  ///< object of strings
Result<Value> yaml(std::string_view text);                              ///< one document, or a list of several
// Dialect 2.
Result<std::string> cron(std::string_view text);
Result<std::string> rate(std::string_view text);  ///< a duration, or `count/nanoseconds` in lowest terms
Result<std::string> mode(std::string_view text, bool is_number);  ///< of a file; a text is octal, a number decimal
Result<std::string> base64_bytes(std::string_view text);
Result<std::string> reference(std::string_view text, const std::string& unit);
/// Of a DNS TXT record (RFC 1035, 5.1): quoted strings are joined; a text without quotes is as it is.
Result<std::string> txt(std::string_view text);
/// Of a container: `nginx` is `docker.io/library/nginx:latest`; a digest counts more than a tag beside it.
Result<std::string> image(std::string_view text);
/// An expression of SQL as a tree in canonical text: white space, case of words outside of quotes, parentheses that
/// change nothing, and casts of literals to text do not count. `invalid` for what is no expression.
Result<std::string> sql(std::string_view text);
Result<std::string> sql_identifier(std::string_view text);  ///< folded to lower case unless it is quoted
Result<Value> ini(std::string_view text);                   ///< an object of sections
/// Attributes by name, blocks as lists by type and labels: `{"path": {"secret/*": [{…}]}}`. Expressions that are no
/// literals are `{"$expression": text}`. Text that begins with `{` is read as JSON.
Result<Value> hcl(std::string_view text);
Result<Value> xml(std::string_view text);        ///< attributes as `@name`, text as `#text`, lists of children by name
std::string short_weeks(std::string_view text);  ///< `2 weeks` -> `2 w`
/// Returns the last part of a reference, which all forms of it share.
std::string last_part(std::string_view text, const std::string& unit);
/// Returns the text in that encoding as plain text; a text that is not in it as it is.
std::string decoded(Encoding encoding, std::string text);
std::string unicode_form(UnicodeForm form, std::string text);  ///< text that is not UTF-8 stays
/// Reads the text of type json, yaml, ini, xml, hcl or properties as a value. `budget` if it exceeds a limit, `invalid`
/// if it is not of its type.
Result<Value> read_document(const AttributeRule& rule, std::string_view text);

/// Renders any value with its numbers as exact decimals and its strings folded and trimmed as the rule says.
std::string structure(const AttributeRule& rule, const Value& value);
/// Applies the rule's `encoding`, `unicode`, `trim` and `fold`.
std::string fold_and_trim(const AttributeRule& rule, std::string_view text);

}  // namespace driftd::core::types
