#include "bench/table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace stitchkit::bench {

namespace {

using Cells = std::array<std::string, 7>;

const char* verdictOf(const Row& row) {
  if (!row.met) {
    return "not measured";
  }
  return *row.met ? "met" : "MISSED";
}

Cells cellsOf(const Row& row) {
  return {row.what, row.sidecar, row.comparedTo, row.figure, row.target, verdictOf(row), row.node};
}

void printLine(const Cells& cells, const std::array<std::size_t, 7>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    line.append(widths[i] - cells[i].size() + 2, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  std::puts(line.c_str());
}

}  // namespace

void printTable(const std::vector<Row>& rows) {
  std::vector<Cells> lines{{"what", "sidecar", "compared to", "figure", "target", "", "Node launcher"}};
  for (const Row& row : rows) {
    lines.push_back(cellsOf(row));
  }
  std::array<std::size_t, 7> widths{};
  for (const Cells& cells : lines) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  for (const Cells& cells : lines) {
    printLine(cells, widths);
  }
  const auto met = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.met == true; });
  const auto open = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.met; });
  std::printf("%td of %zu targets met", met, rows.size());
  std::printf(open == 0 ? "\n" : ", %td not measured\n", open);
}

std::string formatNumber(double value, int digits, const std::string& unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text + (' ' + unit);
}

std::string formatSeconds(double seconds) {
  const bool millis = seconds >= 1e-3;
  const double value = seconds * (millis ? 1e3 : 1e6);
  return formatNumber(value, value < 10 ? 2 : value < 100 ? 1 : 0, millis ? "ms" : "us");
}

std::string formatBaseline(double theirs, double ours) {
  return formatSeconds(theirs) + ", " + formatNumber(theirs / ours, 1, "x");
}

}  // namespace stitchkit::bench
