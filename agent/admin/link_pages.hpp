// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/denials.hpp"
#include "core/ports/control.hpp"
#include "core/ports/links.hpp"
#include "core/ports/reader.hpp"

namespace driftd::admin {

/// What the pages need. All of it must outlive them.
struct LinkDependencies {
  core::Control& control;
  core::Reader& reader;
  core::LinkStore& links;
  const Clock& clock;
};

/// A page for a browser.
struct LinkPage {
  int status = 200;  ///< of HTTP
  std::string html;
};

/// The pages behind the links of notifications (docs/operate.md). Mail filters and chat programs open every link, so
/// show() decides nothing; only decide() does, for a form that a person sent. Neither a page's address nor any log or
/// audit line has a token. Core thread.
class LinkPages {
 public:
  explicit LinkPages(LinkDependencies deps) : deps_(deps) {}
  /// Shows what the link would decide, and asks. Or why it cannot.
  Task<LinkPage> show(std::string token);
  /// Decides. `body` is the form: token, name, reason. Or says why nothing was decided.
  Task<LinkPage> decide(std::string body);
  /// As Api::audit_unwritten_denials(), about tokens that no link has.
  Task<void> audit_unwritten_denials(bool all);

 private:
  /// A link that may still decide, with the drift that it is about; or the page that says why it may not.
  struct Found {
    core::DecisionLink link;
    core::DriftRow row;
    LinkPage refusal;
    bool usable = false;
  };
  Task<Found> find(std::string token);
  Task<Result<core::Drift>> carry_out(core::DecisionLink link, std::string name, std::string reason);
  Task<void> audit_failure(core::DecisionLink link, std::string name, Error error);
  Task<void> audit_unknown();

  LinkDependencies deps_;
  core::Denials denials_;
};

/// Parses a form as browsers send it (application/x-www-form-urlencoded). A field that stands twice has its first
/// value. Bytes that are not valid UTF-8 become U+FFFD. Returns `invalid` for a malformed escape.
Result<std::map<std::string, std::string>> parse_form(std::string_view body);

/// Returns text for HTML, between tags and inside of quoted attributes.
std::string html_text(std::string_view text);

}  // namespace driftd::admin
