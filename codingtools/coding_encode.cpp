#include <boost/json/array.hpp>

#include "codingtools/coding_requests.h"

namespace stitchkit {

namespace json = boost::json;

namespace {

json::array strings(const std::vector<std::string>& list) {
  json::array array;
  array.reserve(list.size());
  for (const std::string& item : list) {
    array.emplace_back(item);
  }
  return array;
}

/// Nothing was denied: then nothing is said of it.
void addDenied(json::object& object, json::array denied, bool truncated) {
  if (!denied.empty() || truncated) {
    object["denied"] = std::move(denied);
    object["deniedTruncated"] = truncated;
  }
}

json::array deniedOf(const std::vector<DeniedPath>& paths) {
  json::array denied;
  for (const DeniedPath& each : paths) {
    denied.push_back({{"path", each.path}, {"kind", each.directory ? "directory" : "file"}});
  }
  return denied;
}

json::object entryOf(const ListedEntry& entry) {
  json::object object{{"name", entry.name}, {"kind", entry.kind}};
  if (entry.bytes) {
    object["bytes"] = *entry.bytes;
  }
  if (entry.excluded) {
    object["excluded"] = true;
  }
  if (!entry.addressable) {
    object["unaddressable"] = true;
  }
  return object;
}

json::object matchOf(const SearchMatch& match, bool withContext) {
  json::object object{{"path", match.path}};
  if (match.line != 0) {
    object["line"] = match.line;
    object["text"] = match.text;
  }
  if (match.line != 0 && withContext) {
    object["before"] = strings(match.before);
    object["after"] = strings(match.after);
  }
  return object;
}

json::object artifactOf(const KeptOutput& kept) {
  return {{"reference", kept.reference}, {"bytes", kept.bytes},         {"truncated", kept.truncated},
          {"headBytes", kept.headBytes}, {"tailBytes", kept.tailBytes}, {"omittedBytes", kept.omittedBytes}};
}

}  // namespace

json::value encode(CreatedToolset result) {
  return {{"toolset", result.toolset}, {"tools", std::move(result.tools)}};
}

json::value encode(DeletedToolset) {
  return json::object();
}

json::value encode(const ReadFileOutput& result) {
  json::object object{{"path", result.path}, {"text", result.text}, {"bytes", result.bytes}};
  if (result.sha256) {
    object["sha256"] = *result.sha256;
  }
  object["truncated"] = result.truncated;
  if (result.nextOffset) {
    object["nextOffset"] = *result.nextOffset;
  }
  return object;
}

json::value encode(const WriteFileOutput& result) {
  return {{"path", result.path}, {"bytes", result.bytes}, {"createdDirectories", strings(result.createdDirectories)}};
}

json::value encode(const EditFileOutput& result) {
  return {{"path", result.path},     {"baseSha256", result.baseSha256},
          {"sha256", result.sha256}, {"replacements", result.replacements},
          {"bytes", result.bytes},   {"applied", result.applied}};
}

json::value encode(const ListDirectoryOutput& result) {
  json::array entries;
  entries.reserve(result.entries.size());
  for (const ListedEntry& entry : result.entries) {
    entries.push_back(entryOf(entry));
  }
  json::object object{{"path", result.path}, {"entries", std::move(entries)}, {"truncated", result.truncated}};
  json::array denied;
  for (const ListedDenial& each : result.denied) {
    denied.push_back({{"path", each.path}, {"kind", each.kind}});
  }
  addDenied(object, std::move(denied), result.deniedTruncated);
  return object;
}

json::value encode(const GlobResult& result) {
  json::object object{{"paths", strings(result.paths)},
                      {"truncated", result.truncated},
                      {"resultTruncated", result.resultTruncated},
                      {"skippedDirectories", result.skippedDirectories},
                      {"scannedFiles", result.scannedFiles}};
  addDenied(object, deniedOf(result.denied), result.deniedTruncated);
  return object;
}

json::value encode(const SearchFilesOutput& output) {
  const SearchResult& result = output.result;
  json::array matches;
  matches.reserve(result.matches.size());
  for (const SearchMatch& match : result.matches) {
    matches.push_back(matchOf(match, output.withContext));
  }
  json::object object{{"matches", std::move(matches)},
                      {"truncated", result.truncated},
                      {"scannedFiles", result.scannedFiles},
                      {"skippedDirectories", result.skippedDirectories},
                      {"skippedSymlinks", result.skippedSymlinks}};
  addDenied(object, deniedOf(result.denied), result.deniedTruncated);
  if (!result.hint.empty()) {
    object["hint"] = result.hint;
  }
  return object;
}

json::value encode(const RunCommandOutput& result) {
  json::object object{{"executable", result.executable}};
  object["exitCode"] = result.exitCode ? json::value(*result.exitCode) : json::value(nullptr);
  object["signal"] = result.signal != nullptr ? json::value(result.signal) : json::value(nullptr);
  object["stdout"] = result.standardOutput;
  object["stderr"] = result.standardError;
  object["outcome"] = result.outcome;
  if (result.artifact) {
    object["artifact"] = artifactOf(*result.artifact);
  }
  if (!result.resource.empty()) {
    object["details"] = json::object{{"resource", result.resource}};
  }
  return object;
}

json::value encode(const ReadOutputOutput& result) {
  json::object object{{"reference", result.reference},
                      {"offset", result.window.offset},
                      {"text", result.window.text},
                      {"bytes", result.window.bytes}};
  if (result.window.totalBytes) {
    object["totalBytes"] = *result.window.totalBytes;
  }
  return object;
}

json::value encode(const SearchOutputOutput& result) {
  json::array matches;
  for (const ArtifactMatch& match : result.matches) {
    matches.push_back({{"line", match.line}, {"text", match.text}});
  }
  return {{"reference", result.reference}, {"matches", std::move(matches)}};
}

}  // namespace stitchkit
