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

using Labels = std::map<std::string, std::string>;

/// The series of one metric family by their labels, so that they can be removed.
template <class T>
class SeriesSet {
 public:
  explicit SeriesSet(prometheus::Family<T>& family) : family_(family) {}
  template <class... Args>
  T& at(const Labels& labels, const Args&... args) {
    T*& slot = series_[labels];
    if (slot == nullptr) slot = &family_.Add(labels, args...);
    return *slot;
  }
  void forget(const std::string& key, const std::string& value) {
    std::erase_if(series_, [&](const auto& entry) {
      const auto label = entry.first.find(key);
      const bool gone = label != entry.first.end() && label->second == value;
      if (gone) family_.Remove(entry.second);
      return gone;
    });
  }
  void clear() {
    for (const auto& [labels, series] : series_) family_.Remove(series);
    series_.clear();
  }

 private:
  prometheus::Family<T>& family_;
  std::map<Labels, T*> series_;
};

using Counters = SeriesSet<prometheus::Counter>;
using Gauges = SeriesSet<prometheus::Gauge>;
using Histograms = SeriesSet<prometheus::Histogram>;

/// Makes the metric families of one agent. Their names begin with its prefix (`metrics.prefix`). It must outlive them.
class MetricFamilies {
 public:
  explicit MetricFamilies(std::string prefix) : prefix_(std::move(prefix) + "_") {}
  prometheus::Family<prometheus::Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(prefix_ + name).Help(help).Register(registry_);
  }
  prometheus::Family<prometheus::Gauge>& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(prefix_ + name).Help(help).Register(registry_);
  }
  prometheus::Family<prometheus::Histogram>& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(prefix_ + name).Help(help).Register(registry_);
  }
  std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

 private:
  std::string prefix_;
  prometheus::Registry registry_;
};

}  // namespace driftd::admin
