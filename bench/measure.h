// Medians of things measured in turn, so that a machine that drifts drifts for all of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace stitchkit::bench {

/// Runs once and says how long it took, in seconds.
using Measurement = std::function<double()>;

/// The wall-clock time of `action`, in seconds.
template <class Action>
double timed(Action&& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// `values` must not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Each round runs every measurement once, in order; a tenth of the rounds go before and are not counted.
/// The medians, in the order of `measurements`, in seconds.
inline std::vector<double> interleavedMedians(int rounds, const std::vector<Measurement>& measurements) {
  std::vector<std::vector<double>> times(measurements.size());
  const int uncounted = rounds / 10 + 1;
  for (int round = -uncounted; round < rounds; ++round) {
    for (std::size_t i = 0; i < measurements.size(); ++i) {
      const double seconds = measurements[i]();
      if (round >= 0) {
        times[i].push_back(seconds);
      }
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& series : times) {
    medians.push_back(median(std::move(series)));
  }
  return medians;
}

}  // namespace stitchkit::bench
