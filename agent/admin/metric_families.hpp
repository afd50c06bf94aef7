// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace driftd::admin {

/// Label names and their values. Two series of one family differ in at least one value.
using Labels = std::map<std::string, std::string>;

/// The series of one metric family by their labels, so that they can be removed.
template <class T>
class SeriesSet {
 public:
  /// The family must outlive it. It belongs to a registry of MetricFamilies.
  explicit SeriesSet(prometheus::Family<T>& family) : family_(family) {}
  template <class... Args>
  /// Returns the series of these labels, which it makes at first use. `args` are those of the metric's constructor,
  /// such as the buckets of a histogram. Valid until the series is removed.
  T& at(const Labels& labels, const Args&... args) {
    T*& slot = series_[labels];
    if (slot == nullptr) slot = &family_.Add(labels, args...);
    return *slot;
  }
  const std::map<Labels, T*>& all() const { return series_; }  ///< valid until one is made or removed
  /// Removes all series that have this value for this label.
  void forget(const std::string& key, const std::string& value) {
    std::erase_if(series_, [&](const auto& entry) {
      const auto label = entry.first.find(key);
      const bool gone = label != entry.first.end() && label->second == value;
      if (gone) family_.Remove(entry.second);
      return gone;
    });
  }
  /// Removes all series.
  void clear() {
    for (const auto& [labels, series] : series_) family_.Remove(series);
    series_.clear();
  }

 private:
  prometheus::Family<T>& family_;  ///< owned by the registry
  std::map<Labels, T*> series_;    ///< the series are owned by the family
};

using Counters = SeriesSet<prometheus::Counter>;
using Gauges = SeriesSet<prometheus::Gauge>;
using Histograms = SeriesSet<prometheus::Histogram>;

/// Makes the metric families of one agent. Their names begin with its prefix (`metrics.prefix`). It must outlive them.
class MetricFamilies {
 public:
  explicit MetricFamilies(std::string prefix) : prefix_(std::move(prefix) + "_") {}
  /// Each registers a family and returns a reference that is valid as long as this object. `name` has no prefix; `help`
  /// is what a scrape shows beside it.
  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(prefix_ + name).Help(help).Register(registry_);
  }
  prometheus::Family<prometheus::Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(prefix_ + name).Help(help).Register(registry_);
  }
  prometheus::Family<prometheus::Histogram>& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(prefix_ + name).Help(help).Register(registry_);
  }
  /// Returns a copy of all current values.
  std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

 private:
  std::string prefix_;             ///< ends with an underscore
  prometheus::Registry registry_;  ///< owns all families
};

}  // namespace driftd::admin
