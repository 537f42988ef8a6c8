// Whether what was seen after the work is what was seen before it.
#pragma once

#include <string>
#include <vector>

#include "tests/soak/facts.h"

namespace stitchkit::soak {

/// One line of the table.
struct Row {
  std::string what;
  std::string before;
  std::string after;
  std::string leak;  ///< what leaked; "" for nothing
};

/// One sidecar at two moments at which it has the same to do. Memory is not judged: memoryRow().
std::vector<Row> compare(const std::string& when, const SidecarFacts& before, const SidecarFacts& after);

/// The machine before the first sidecar and after the last one. The fewer of anything the better.
std::vector<Row> compare(const MachineFacts& before, const MachineFacts& after);

bool clean(const std::vector<Row>& rows);
/// Rows below each other, and beside each that leaks what it leaks.
std::string tableText(const std::vector<Row>& rows);

/// Whether memory grows with the work. `anonymousKib` are samples at rest, the same work between each two of them.
///
/// The rule: the first third is warm-up. Of the rest, a leak makes nearly every later sample larger than nearly every
/// earlier one, while a heap that keeps up to some megabytes of freed memory goes up and down. So it is a leak when
/// both hold: the trend is certain (Mann and Kendall's test, three standard deviations, which chance reaches once in
/// 700 runs), and it comes to more than kMemoryNoiseKib over the samples by the median slope (Theil and Sen's, which no
/// single sample moves).
Row memoryRow(const std::vector<long>& anonymousKib);
inline constexpr double kMemoryNoiseKib = 1024;

}  // namespace stitchkit::soak
