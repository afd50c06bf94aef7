// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "support/put_back.hpp"
#include "world.hpp"

namespace driftd::test {

/// A realm that all tests of driftd.apply share, with the README's roles for writing.
class KeycloakApply : public SharedKeycloak {
 protected:
  KeycloakApply();

  /// The roles of the README that an account needs to put values back, beside those to read.
  static std::vector<std::string> write_roles();
  static std::string key();  ///< another one each time
  static nlohmann::json with(nlohmann::json object, const std::string& name, const nlohmann::json& value);
  /// The id of the resource; `rest` is empty for the realm.
  std::string id_of(const std::string& rest) const { return rest.empty() ? realm_ : id(rest); }
  /// The attributes as the provider reads them now.
  nlohmann::json body(const std::string& kind, const std::string& rest) const;
  /// Makes `drift` and puts back what was there before: shown first without a change, then made, then equal, and the
  /// same key again changes nothing. Returns the call that did it.
  AppliedCall restored(const std::string& kind, const std::string& rest, const std::function<void()>& drift) const;
  /// The request that puts back what `drift` changes, after it did.
  sdk::Apply drifted(const std::string& kind, const std::string& rest, const std::function<void()>& drift) const;

  /// `front` and the UUID of this client scope, which is there.
  std::string path_of_scope(const std::string& front, const std::string& name) const;
  std::string component_uuid(const std::string& provider_id) const;
  /// Copies the browser flow and gives one execution a configuration. Returns the path of the copy.
  std::string make_flow(const std::string& alias) const;
  std::string config_of(const std::string& flow) const;  ///< path of the configuration of its first such execution

  std::unique_ptr<ProviderProbe> p_;
};

}  // namespace driftd::test
