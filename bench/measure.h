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

/// The value below which `share` of them (0 to 1, not 1) lie. `values` must not be empty.
inline double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * share);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// `values` must not be empty.
inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

/// Each round runs every measurement once, in order; a tenth of the rounds go before and are not counted.
/// What they said, in the order of `measurements`, in seconds.
inline std::vector<std::vector<double>> interleaved(int rounds, const std::vector<Measurement>& measurements) {
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
  return times;
}

/// The medians of the same.
inline std::vector<double> interleavedMedians(int rounds, const std::vector<Measurement>& measurements) {
  std::vector<double> medians;
  for (std::vector<double>& series : interleaved(rounds, measurements)) {
    medians.push_back(median(std::move(series)));
  }
  return medians;
}

}  // namespace stitchkit::bench
