// The one table that the benchmark prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stitchkit::bench {

/// A line of the table. Texts are ready to print; "" where a column does not apply.
struct Row {
  std::string what;
  std::string sidecar;     ///< our median
  std::string comparedTo;  ///< what it is set against, with its median
  std::string figure;      ///< what the target speaks of
  std::string target;
  std::optional<bool> met;  ///< nullopt: it was not measured, and `figure` says why
  std::string node;         ///< the Node launcher's median for the same, and how many times ours it is
};

/// Prints `rows` on stdout, in columns, and a last line that says how many targets were met, and how many not measured.
void printTable(const std::vector<Row>& rows);

/// "1.23 ms", "45.6 us": three digits and the unit that suits.
std::string formatSeconds(double seconds);
/// `value` with `digits` behind the point, then a space and `unit`.
std::string formatNumber(double value, int digits, const std::string& unit);
/// "5.20 ms, 3.1 x": theirs, and how many times ours it is.
std::string formatBaseline(double theirs, double ours);

}  // namespace stitchkit::bench
