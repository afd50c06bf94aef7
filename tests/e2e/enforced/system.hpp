// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace driftd::test {

/// A real system with one resource of its own for each test, one value of which the agent puts back. It is read and
/// changed as its administrator would, never through driftd.
class System {
 public:
  virtual ~System() = default;
  /// The provider and its settings, as flow YAML: `provider: x, settings: { … }`.
  virtual std::string backend() const = 0;
  virtual std::map<std::string, std::string> secrets() const = 0;
  virtual std::string resource() const = 0;       ///< `kind/id`
  virtual std::string path() const = 0;           ///< of the value, as a rule writes it
  virtual std::string set_value(int number) = 0;  ///< sets the value of this number and returns it; 0 is the agreed one
  virtual std::string value() const = 0;          ///< what the system says now; empty if the resource is gone
  virtual void remove() = 0;                      ///< deletes the resource
  virtual std::string names() const = 0;          ///< of everything of this kind that the test owns
  virtual void grant(bool may_write) = 0;
  virtual std::string missing_right() const = 0;  ///< what the refusal without it contains
  /// Sets value 1 in such a way that the system refuses the agreed one from now on.
  virtual void set_and_refuse() = 0;
  virtual std::string refusal() const = 0;  ///< what the system says then
};

std::unique_ptr<System> make_postgres();
std::unique_ptr<System> make_kafka();
std::unique_ptr<System> make_kube();

}  // namespace driftd::test
