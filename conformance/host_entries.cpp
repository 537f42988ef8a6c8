#include "conformance/host_entries.h"

#include <algorithm>
#include <filesystem>

#include "conformance/bytes.h"

namespace conformance {
namespace {

namespace fs = std::filesystem;
using Problem = std::optional<std::string>;

std::optional<int> modeOf(const Json& entry) {
  return entry.contains("mode") ? std::optional<int>(std::stoi(entry["mode"].get<std::string>(), nullptr, 8))
                                : std::nullopt;
}

Problem makeParents(HostFiles& files, const fs::path& top, const fs::path& relative) {
  fs::path at = top;
  std::error_code error;
  for (const auto& segment : relative.parent_path()) {
    at /= segment;
    if (!fs::exists(at, error)) {
      if (Problem problem = files.makeDirectory(at.string(), std::nullopt)) {
        return problem;
      }
    }
  }
  return std::nullopt;
}

Problem makeFile(HostFiles& files, const std::string& path, const Json& entry) {
  const auto bytes = entry.contains("base64") ? decodeBase64(entry["base64"].get<std::string>())
                                              : std::optional(entry.value("text", ""));
  if (!bytes) {
    return "the case holds wrong base64";
  }
  const Problem problem = files.makeFile(path, *bytes, modeOf(entry));
  return !problem && entry.contains("size") ? files.setSize(path, entry["size"].get<std::uintmax_t>()) : problem;
}

Problem makeEntry(HostFiles& files, const std::string& path, const Json& entry,
                  const std::function<std::string(const Json&)>& resolve) {
  if (entry.is_string()) {
    return files.makeFile(path, entry.get<std::string>(), std::nullopt);
  }
  if (entry.contains("directory")) {
    std::error_code error;
    return fs::is_directory(path, error) ? Problem() : files.makeDirectory(path, std::nullopt);
  }
  if (entry.contains("link")) {
    return files.makeLink(path, resolve(entry["link"]));
  }
  if (entry.contains("fifo")) {
    return files.makeUnreadFifo(path);
  }
  if (entry.contains("socket")) {
    return files.makeSocket(path);
  }
  return makeFile(files, path, entry);
}

Problem makeRun(HostFiles& files, const fs::path& top, const Json& run) {
  const auto digits = run.value("digits", std::size_t{4});
  for (int i = 0; i < run["count"].get<int>(); ++i) {
    std::string number = std::to_string(i);
    number.insert(0, digits - std::min(digits, number.size()), '0');
    const fs::path path =
        fs::path(run.value("directory", "")) / (run.value("prefix", "") + number + run.value("suffix", ""));
    Problem problem = i == 0 ? makeParents(files, top, path) : std::nullopt;
    problem = problem ? problem : files.makeFile((top / path).string(), run.value("text", ""), std::nullopt);
    if (problem) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace

Problem makeEntries(HostFiles& files, const std::string& directory, const Json& entries, const Json& many,
                    const std::function<std::string(const Json&)>& resolve) {
  const fs::path top(directory);
  for (const auto& [name, entry] : entries.items()) {
    Problem problem = makeParents(files, top, name);
    if (!problem && !(entry.is_object() && entry.contains("hardLink"))) {
      problem = makeEntry(files, (top / name).string(), entry, resolve);
    }
    if (problem) {
      return problem;
    }
  }
  for (const auto& run : many) {
    if (Problem problem = makeRun(files, top, run)) {
      return problem;
    }
  }
  // What another entry has to be there for, and what would keep others from being made.
  for (const auto& [name, entry] : entries.items()) {
    Problem problem;
    if (entry.is_object() && entry.contains("hardLink")) {
      problem = files.makeHardLink((top / name).string(), (top / entry["hardLink"].get<std::string>()).string());
    } else if (entry.is_object() && entry.contains("directory") && modeOf(entry)) {
      problem = files.setMode((top / name).string(), *modeOf(entry));
    }
    if (problem) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace conformance
