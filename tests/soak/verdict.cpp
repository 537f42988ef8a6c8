#include "tests/soak/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

namespace stitchkit::soak {
namespace {

constexpr double kCertain = 3;
constexpr std::size_t kNamed = 8;  // of things of a kind that leaked

Row countRow(const std::string& what, long before, long after) {
  return {what, std::to_string(before), std::to_string(after),
          after > before ? std::to_string(after - before) + " more" : ""};
}

Row setRow(const std::string& what, const std::set<std::string>& before, const std::set<std::string>& after) {
  Row row{what, std::to_string(before.size()), std::to_string(after.size()), ""};
  std::size_t more = 0;
  for (const std::string& one : after) {
    if (before.count(one) == 0 && ++more <= kNamed) {
      row.leak += (row.leak.empty() ? "" : ", ") + one;
    }
  }
  row.leak += more > kNamed ? ", and " + std::to_string(more - kNamed) + " more" : "";
  return row;
}

std::string kindsThatGrew(const SidecarFacts& before, const SidecarFacts& after) {
  std::string kinds;
  for (const auto& [kind, count] : after.descriptors) {
    const auto earlier = before.descriptors.find(kind);
    const long more = count - (earlier == before.descriptors.end() ? 0 : earlier->second);
    if (more > 0) {
      kinds += (kinds.empty() ? "" : ", ") + std::to_string(more) + " " + kind;
    }
  }
  return kinds;
}

Row memoryOnly(const std::string& what, long before, long after) {
  return {what, std::to_string(before), std::to_string(after), ""};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<Row> compare(const std::string& when, const SidecarFacts& before, const SidecarFacts& after) {
  std::vector<Row> rows;
  rows.push_back(countRow(when + ": descriptors", before.allDescriptors(), after.allDescriptors()));
  if (!rows.back().leak.empty()) {
    rows.back().leak = kindsThatGrew(before, after);
  }
  rows.push_back(countRow(when + ": threads", before.threads, after.threads));
  rows.push_back(countRow(when + ": children", before.children, after.children));
  rows.push_back(countRow(when + ": wardens", before.wardens, after.wardens));
  rows.push_back(countRow(when + ": zombies", 0, after.zombies));
  rows.push_back(memoryOnly(when + ": resident KiB", before.residentKib, after.residentKib));
  rows.push_back(memoryOnly(when + ": PSS KiB", before.sharedOutKib, after.sharedOutKib));
  return rows;
}

std::vector<Row> compare(const MachineFacts& before, const MachineFacts& after) {
  return {setRow("mounts", before.mounts, after.mounts),
          setRow("cgroups", before.cgroups, after.cgroups),
          setRow("sockets", before.sockets, after.sockets),
          setRow("/tmp and its like", before.leftovers, after.leftovers),
          setRow("state directory", before.files, after.files),
          setRow("processes", before.processes, after.processes)};
}

Row memoryRow(const std::vector<long>& anonymousKib) {
  const std::vector<double> samples(anonymousKib.begin() + static_cast<std::ptrdiff_t>(anonymousKib.size() / 3),
                                    anonymousKib.end());
  const double count = static_cast<double>(samples.size());
  if (samples.size() < 2) {
    return {"heap KiB, at rest", "-", "-", ""};
  }
  double score = 0;
  std::vector<double> slopes;
  for (std::size_t later = 1; later < samples.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const double rise = samples[later] - samples[earlier];
      score += rise > 0 ? 1 : rise < 0 ? -1 : 0;
      slopes.push_back(rise / static_cast<double>(later - earlier));
    }
  }
  const double deviations = (score - 1) / std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
  const double growth = median(slopes) * (count - 1);
  Row row = memoryOnly("heap KiB, at rest", static_cast<long>(samples.front()), static_cast<long>(samples.back()));
  if (deviations >= kCertain && growth > kMemoryNoiseKib) {
    row.leak = "grows steadily: " + std::to_string(static_cast<long>(growth)) + " KiB over " +
               std::to_string(samples.size()) + " samples";
  }
  return row;
}

bool clean(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.leak.empty(); });
}

std::string tableText(const std::vector<Row>& rows) {
  std::ostringstream text;
  for (const Row& row : rows) {
    text << row.what << std::string(row.what.size() < 36 ? 36 - row.what.size() : 1, ' ');
    text << std::string(row.before.size() < 8 ? 8 - row.before.size() : 0, ' ') << row.before << " -> " << row.after;
    text << (row.leak.empty() ? "" : "   LEAKED: " + row.leak) << "\n";
  }
  return text.str();
}

}  // namespace stitchkit::soak
