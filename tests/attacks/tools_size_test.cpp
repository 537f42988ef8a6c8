// Trees, files, lines and names of a size that nobody expects: tools answer within their limits, and the sidecar's
// memory depends on the limits and not on what a guest has made.
#include "tests/attacks/tool_client.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>

namespace stitchkit::testing {
namespace {

// What calls may add, one after another: results within their limits, the read buffers, listings of the directories on
// the way.
constexpr long kSearchGrowthKib = 64L * 1024;
// Less than the names of the largest directory of the tree would take; for one call, and for each of many at once.
constexpr long kListingGrowthKib = 28L * 1024;
constexpr long kGrowthOfEachKib = 16L * 1024;
constexpr std::size_t kLine = 5UL * 1024 * 1024;
constexpr int kManyFiles = 300000;
constexpr int kFlat = 100000;

/// What a call took.
class Measured {
 public:
  explicit Measured(const Sidecar& sidecar) : sidecar_(sidecar), before_(countersOf(sidecar.pid()).peakKib) {}
  [[nodiscard]] Milliseconds took() const {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start_);
  }
  void check(Milliseconds most, long growthKib = kSearchGrowthKib) const {
    const long grown = countersOf(sidecar_.pid()).peakKib - before_;
    CAPTURE(grown, growthKib);
    CHECK((isSanitized(sidecar_.pid()) || grown < growthKib));
    CHECK(took() < most);
  }

 private:
  const Sidecar& sidecar_;
  long before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct ManyFiles {
  ManyFiles() : session(sidecar) {
    const std::string program = session.install("many_files");
    const RunOutcome made = session.run({program, "many", "200", "1000", std::to_string(kFlat)}, {{"timeoutMs", 60000}},
                                        Milliseconds(60000));
    CAPTURE(made.out, made.err);
    REQUIRE(made.out == "made=ok\n");
  }

  Sidecar sidecar;
  Session session;
};

void searchWithinLimits(ManyFiles& now) {
  ToolClient tools(now.sidecar, now.session);
  const Measured measured(now.sidecar);
  const Json found = tools.call("search_files", {{"query", "needle"}});
  CHECK(found.at("scannedFiles") == 10000);
  CHECK(found.at("truncated") == true);
  const Json paths = tools.call("glob", {{"pattern", "**"}});
  CHECK(paths.at("paths").size() == 100);
  CHECK(paths.at("resultTruncated") == true);
  CHECK(paths.at("scannedFiles") == 10000);
  CHECK(paths.at("truncated") == true);
  const Json listed = tools.call("list_directory", {{"path", "many/all"}});
  CHECK(listed.at("entries").size() == 500);
  CHECK(listed.at("entries")[0].at("name").get<std::string>().starts_with("f0000000x"));
  CHECK(listed.at("truncated") == true);
  measured.check(Milliseconds(15000), kListingGrowthKib);
}

// Control: the tree is there, and the limits are what ended it. With others all of it is seen, in the same memory.
// @return how long a search took.
Milliseconds searchAll(ManyFiles& now, ToolClient& patient) {
  const Measured measured(now.sidecar);
  CHECK(patient.call("search_files", {{"query", "needle"}}, Milliseconds(60000)).at("scannedFiles") == kManyFiles);
  const auto took = measured.took();
  const Json hay = patient.call("search_files", {{"query", "hay"}}, Milliseconds(60000));
  CHECK(hay.at("matches").size() == 100);
  CHECK(hay.at("truncated") == true);
  const Json last = patient.call("glob", {{"pattern", "many/all/f0099999x*"}}, Milliseconds(60000));
  CHECK(last.at("paths").size() == 1);
  CHECK(patient.call("list_directory", {{"path", "many/all"}}).at("entries").size() == 10000);
  measured.check(Milliseconds(60000));
  return took;
}

void searchManyTimesAtOnce(ManyFiles& now) {
  ToolClient tools(now.sidecar, now.session);
  const Measured measured(now.sidecar);
  std::vector<std::int64_t> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(tools.request("glob", {{"pattern", "**/*9"}}));
    requests.push_back(tools.request("search_files", {{"query", "needle"}}));
  }
  for (const auto id : requests) {
    CHECK(now.sidecar.response(id, Milliseconds(60000)).contains("result"));
  }
  measured.check(Milliseconds(60000), kGrowthOfEachKib * static_cast<long>(requests.size()));
}

/// @return how long the calls took that were cancelled.
Milliseconds cancelInTheMiddle(ManyFiles& now, ToolClient& patient) {
  const Measured cut(now.sidecar);
  const auto search = patient.request("search_files", {{"query", "needle"}});
  const auto glob = patient.request("glob", {{"pattern", "**/nowhere"}});
  now.sidecar.call("session.resolvePath", {{"handle", now.session.handle()}, {"path", "x"}});  // they have begun
  for (const auto id : {search, glob}) {
    now.sidecar.cancel(id);
    CHECK(codeOf(now.sidecar.response(id)) == "CANCELLED");
  }
  return cut.took();
}

void cancelWhileItAsks(ManyFiles& now) {
  ToolClient asking(now.sidecar, now.session, {{"authorizePaths", "host"}, {"limits", {{"maxSearchFiles", 1000000}}}});
  const Measured measured(now.sidecar);
  const auto id = asking.request("glob", {{"pattern", "**"}});
  for (int answered = 0; answered < 5; ++answered) {
    const Json question = now.sidecar.hostRequest();
    const std::size_t paths = question.at("params").at("paths").size();
    CHECK(paths <= 8192);
    answerHost(now.sidecar, question, {{"allowed", std::vector<bool>(paths, true)}});
  }
  now.sidecar.hostRequest();  // never answered
  now.sidecar.cancel(id);
  CHECK(codeOf(now.sidecar.response(id, Milliseconds(15000))) == "CANCELLED");
  measured.check(Milliseconds(15000));
}

// One tree for all: it takes longer to make and remove than to attack with.
TEST_CASE("a tree of 300,000 files is searched and listed within the limits, and in bounded memory") {
  ManyFiles now;
  ToolClient patient(now.sidecar, now.session, {{"limits", {{"maxSearchFiles", 1000000}, {"maxListEntries", 10000}}}});
  searchWithinLimits(now);
  searchManyTimesAtOnce(now);
  const Milliseconds whole = searchAll(now, patient);
  // Did it go on to the end, it would take that long each time; a busy machine holds it up sometimes.
  CHECK(eventually([&] { return cancelInTheMiddle(now, patient) < std::max(whole / 2, Milliseconds(100)); }));
  cancelWhileItAsks(now);
  CHECK(now.session.run({"/bin/echo", "alive"}).out == "alive\n");
}

TEST_CASE("a sparse file of 1 TiB is read in windows, and neither edited nor searched") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session);
  constexpr std::int64_t kTebibyte = 1LL << 40;
  const RunOutcome made =
      session.sh("truncate -s 1T huge && printf end >> huge && stat -c %s huge && echo needle > small");
  REQUIRE(made.out == std::to_string(kTebibyte + 3) + "\n");
  const Measured measured(sidecar);
  const Json head = tools.call("read_file", {{"path", "huge"}, {"maxBytes", 10}});
  CHECK(head.at("text") == std::string(10, '\0'));
  CHECK(head.at("truncated") == true);
  CHECK(head.at("nextOffset") == 10);
  CHECK(tools.call("read_file", {{"path", "huge"}}).at("bytes") == 262144);
  const Json end = tools.call("read_file", {{"path", "huge"}, {"offset", kTebibyte}});
  CHECK(end.at("text") == "end");
  CHECK(end.at("truncated") == false);
  CHECK(tools.call("read_file", {{"path", "huge"}, {"offset", 9007199254740991LL}}).at("text") == "");
  CHECK(codeOf(tools.answer("edit_file", {{"path", "huge"}, {"oldText", "end"}, {"newText", "x"}})) == "BAD_REQUEST");
  const Json found = tools.call("search_files", {{"query", "needle"}});
  CHECK(found.at("matches").size() == 1);
  CHECK(found.at("truncated") == true);  // the large one was left out
  CHECK(tools.call("glob", {{"pattern", "*"}}).at("paths") == Json{"huge", "small"});
  CHECK(tools.call("list_directory", Json{{"path", "."}}).at("entries")[0].at("bytes") == kTebibyte + 3);
  CHECK(tools.call("write_file", {{"path", "huge"}, {"content", "small now"}, {"overwrite", true}}).at("bytes") == 9);
  measured.check(Milliseconds(15000));
}

TEST_CASE("lines of 5 MiB are read in windows and not searched, however large files may be") {
  Sidecar sidecar;
  Session session(sidecar);
  const std::size_t maxReadBytes = GENERATE(262144, 8388608);
  ToolClient tools(sidecar, session, {{"limits", {{"maxReadBytes", maxReadBytes}}}});
  REQUIRE(session
              .sh("{ head -c " + std::to_string(kLine) +
                  " /dev/zero | tr '\\0' a; echo needle; echo needle; } > long; echo needle > short")
              .exitCode == 0);
  const Measured measured(sidecar);
  const Json found = tools.call("search_files", {{"query", "needle"}});
  const bool looksInside = maxReadBytes > kLine;
  CHECK(found.at("matches").size() == (looksInside ? 2U : 1U));
  CHECK(found.at("truncated") == true);
  for (const Json& match : found.at("matches")) {
    CHECK(match.at("text") == "needle");
  }
  CHECK(tools.call("search_files", {{"query", "a+needle$"}, {"regex", true}}).at("matches").empty());
  const Json window = tools.call("read_file", {{"path", "long"}, {"offset", kLine - 2}, {"maxBytes", 20}});
  CHECK(window.at("text") == "aaneedle\nneedle\n");
  CHECK(tools.call("read_file", {{"path", "long"}}).at("bytes") == std::min(maxReadBytes, kLine + 14));
  const Json edited = tools.answer("edit_file", {{"path", "long"}, {"oldText", "aneedle"}, {"newText", "b"}});
  CHECK(codeOf(edited) == "BAD_REQUEST");  // too large to edit, or too large to write
  measured.check(Milliseconds(15000));
}

TEST_CASE("names with newlines are ordinary, names that are not UTF-8 are told and out of reach") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session);
  REQUIRE(session
              .sh("printf needle > 'a\nb'; printf needle > 'tab\t\"quote\"'; printf needle > \"$(printf 'bad\\377')\"; "
                  "mkdir \"$(printf 'dir\\200')\" && printf needle > \"$(printf 'dir\\200')/file\"; "
                  "printf needle > \"$(printf '\\355\\240\\200')\"")
              .exitCode == 0);
  const Json listed = tools.call("list_directory", {{"path", "."}}).at("entries");
  CAPTURE(listed.dump());
  CHECK(listed.size() == 5);
  CHECK(std::count_if(listed.begin(), listed.end(),
                      [](const Json& entry) { return entry.contains("unaddressable"); }) == 3);
  const Json expected{"a\nb", "tab\t\"quote\""};
  CHECK(tools.call("glob", {{"pattern", "**"}}).at("paths") == expected);
  CHECK(tools.call("search_files", {{"query", "needle"}}).at("matches").size() == 2);
  for (const std::string name : {"a\nb", "tab\t\"quote\""}) {
    CHECK(tools.call("read_file", {{"path", name}}).at("text") == "needle");
    CHECK(tools.call("edit_file", {{"path", name}, {"oldText", "needle"}, {"newText", "hay"}}).at("applied") == true);
  }
  for (const Json& entry : listed) {
    const std::string name = entry.at("name");
    CAPTURE(name);
    if (entry.contains("unaddressable")) {
      CHECK(codeOf(tools.answer("read_file", {{"path", name}})) == "NOT_FOUND");
      CHECK(codeOf(tools.answer("list_directory", {{"path", name}})) == "NOT_FOUND");
    }
  }
  // Bytes that are no UTF-8 do not get as far as a tool.
  sidecar.sendRaw(
      "{\"jsonrpc\":\"2.0\",\"id\":9999,\"method\":\"coding.read_file\",\"params\":{\"toolset\":\"t1\","
      "\"input\":{\"path\":\"bad\xFF\"}}}\n");
  CHECK(Json::parse(sidecar.receiveLine().value()).at("error").at("code") == -32700);
}

std::string repeated(const std::string& segment, int levels) {
  std::string path = segment;
  for (int level = 1; level < levels; ++level) {
    path += "/" + segment;
  }
  return path;
}

TEST_CASE("40 levels of names of 200 bytes: what a path can name is served, the rest is left out") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session);
  const std::string program = session.install("deep_names");
  REQUIRE(session.run({program, "40", "200", "n"}).out == "made=ok\n");
  const std::string name(200, 'n');
  const Measured measured(sidecar);
  // 20 levels are 4,019 bytes, and with the file's name still below 4,096.
  const std::string within = repeated(name, 20);
  const std::string beyond = repeated(name, 21);
  CHECK(tools.call("read_file", {{"path", within + "/file"}}).at("text") == "deep\n");
  CHECK(tools.call("write_file", {{"path", within + "/made"}, {"content", "x"}}).at("bytes") == 1);
  CHECK(tools.call("list_directory", {{"path", within}}).at("entries").size() == 3);
  for (const auto& [tool, input] : std::vector<std::pair<std::string, Json>>{
           {"read_file", {{"path", beyond + "/file"}}},
           {"write_file", {{"path", beyond + "/made"}, {"content", "x"}}},
           {"edit_file", {{"path", beyond + "/file"}, {"oldText", "deep"}, {"newText", "x"}}},
           {"list_directory", {{"path", beyond}}},
           {"glob", {{"pattern", "**"}, {"path", beyond}}}}) {
    CAPTURE(tool);
    CHECK(codeOf(tools.answer(tool, input)) == "BAD_REQUEST");
  }
  for (const std::string& path : {std::string("."), repeated(name, 19)}) {
    const Json found = tools.call("glob", {{"pattern", "**/file"}, {"path", path}});
    CHECK(found.at("truncated") == true);
    CHECK(found.at("paths").size() == (path == "." ? 20U : 2U));
  }
  const Json found = tools.call("search_files", {{"query", "deep"}});
  CHECK(found.at("matches").size() == 20);
  CHECK(found.at("truncated") == true);
  measured.check(Milliseconds(15000));
  sidecar.call("session.removePath", {{"handle", session.handle()}, {"path", name}});
  CHECK(session.sh("ls").out == "deep_names\n");
}

TEST_CASE("directories deeper than the limit are left out, and that is told") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session);
  ToolClient deeper(sidecar, session, {{"limits", {{"maxSearchDepth", 256}}}});
  const std::string program = session.install("deep_names");
  REQUIRE(session.run({program, "300", "3", "d"}).out == "made=ok\n");
  for (auto& [client, depth] : std::vector<std::pair<ToolClient*, std::size_t>>{{&tools, 32}, {&deeper, 256}}) {
    CAPTURE(depth);
    const Json paths = client->call("glob", {{"pattern", "**/file"}});
    const Json found = client->call("search_files", {{"query", "deep\n"}});
    CHECK(paths.at("scannedFiles") == depth + 1);  // and the program
    CHECK(paths.at("truncated") == true);
    CHECK(found.at("scannedFiles") == depth);
    CHECK(found.at("truncated") == true);
  }
  sidecar.call("handle.delete", {{"handle", session.handle()}});
}

}  // namespace
}  // namespace stitchkit::testing
