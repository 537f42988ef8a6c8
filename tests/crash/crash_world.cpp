#include "tests/crash/crash_world.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <stdexcept>

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

bool isHex(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool isNumber(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char one) { return std::isdigit(one); });
}

std::vector<fs::path> entriesOf(const fs::path& directory) {
  if (!fs::exists(directory)) {
    return {};
  }
  return {fs::directory_iterator(directory), fs::directory_iterator()};
}

/// Those whose names do not pass.
template <class Passes>
void collect(std::vector<std::string>& found, const fs::path& directory, Passes passes) {
  for (const fs::path& entry : entriesOf(directory)) {
    if (!passes(entry.filename().string())) {
      found.push_back(entry.string());
    }
  }
}

void collectOfBackend(std::vector<std::string>& found, const fs::path& backend) {
  collect(found, backend,
          [](const std::string& name) { return name == "templates" || name == "sessions" || name == "staging"; });
  collect(found, backend / "staging", [](const std::string&) { return false; });
  for (const char* area : {"templates", "sessions"}) {
    collect(found, backend / area, isHex);
  }
  for (const fs::path& made : entriesOf(backend / "templates")) {
    collect(found, made, [](const std::string& name) { return name == "data" || name == "ready"; });
  }
  for (const fs::path& session : entriesOf(backend / "sessions")) {
    collect(found, session,
            [](const std::string& name) { return name == "state.json" || name == "workspace" || name == "artifacts"; });
    collect(found, session / "artifacts", [](const std::string& name) { return isNumber(name) || name == "latest"; });
  }
}

/// Every file below, with its content, by relative path.
std::map<std::string, std::string> filesBelow(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), directory).string()] = readFile(entry.path());
    }
  }
  return files;
}

std::map<std::string, std::string> expectedFiles(const std::string& variant) {
  std::map<std::string, std::string> files;
  const Json made = templateFiles(variant);
  for (const auto& [path, text] : made.items()) {
    files[path] = text;
  }
  return files;
}

}  // namespace

Json templateFiles(const std::string& variant) {
  return {{"a.txt", "a " + variant}, {"d/b.txt", std::string(70000, 'b') + variant}, {"d/e/c.txt", "c " + variant}};
}

std::vector<std::string> strays(const std::string& stateDirectory) {
  std::vector<std::string> found;
  collect(found, stateDirectory, [](const std::string& name) { return isHex(name) || name == "support"; });
  for (const fs::path& backend : entriesOf(stateDirectory)) {
    if (isHex(backend.filename())) {
      collectOfBackend(found, backend);
    }
  }
  collect(found, fs::path(stateDirectory) / "support", isHex);
  if (entriesOf(fs::path(stateDirectory) / "support").size() > 1) {
    found.push_back(stateDirectory + "/support: more than one set");
  }
  return found;
}

void CrashWorld::renew() {
  session_.reset();
  known_.reset();
  sidecar_.reset();
  directory_ = std::make_shared<StateDirectory>(startAs_);
  place_ = directory_->path();
  start();
}

void CrashWorld::start() {
  SidecarOptions options;
  options.startAs = startAs_;
  options.state = directory_;
  sidecar_ = std::make_unique<Sidecar>(std::move(options));
  sidecar_->call("rpc.discover");
  marker_ = "60.0" + uniqueDigits();
}

std::string CrashWorld::pathOf(const Json& state) const {
  for (const fs::path& backend : entriesOf(place_)) {
    const fs::path session = backend / "sessions" / state.at("sessionId").get<std::string>();
    if (fs::exists(session)) {
      return session.string();
    }
  }
  return "";
}

std::string CrashWorld::templatePath(const std::string& key) const {
  for (const fs::path& backend : entriesOf(place_)) {
    if (fs::exists(backend / "templates" / key)) {
      return (backend / "templates" / key).string();
    }
  }
  return "";
}

Session& CrashWorld::open(const std::map<std::string, std::string>& files) {
  const Json created =
      sidecar().call("backend.create",
                     {{"template", {{"template", "t"}, {"files", templateFiles(variant_)}}}, {"network", "deny-all"}});
  session_ = std::make_unique<Session>(Session::adopt(sidecar(), created));
  known_.emplace(KnownSession{session_->state(), {}, false, ""});
  for (const auto& [path, text] : expectedFiles(variant_)) {
    known_->files[path] = {text};
  }
  for (const auto& [path, text] : files) {
    sidecar().call("session.writeTextFile", {{"handle", session_->handle()}, {"path", path}, {"text", text}});
    known_->files[path] = {text};
  }
  return *session_;
}

std::vector<std::string> CrashWorld::faultsAfterDeath() {
  faults_.clear();
  session_.reset();
  const std::string marker = marker_;
  start();
  checkTemplates();
  checkKnown();
  checkOthers();
  checkPlace();
  if (!noGuestSoon(marker)) {
    fault("a guest of the killed sidecar is alive");
  }
  checkGuests();
  known_.reset();
  return std::move(faults_);
}

std::vector<std::string> CrashWorld::faultsAfterEnd() {
  faults_.clear();
  sidecar_->closeInput();
  const auto ended = sidecar_->waitForExit();
  if (!ended || ended->code != 0) {
    fault("the sidecar does not end: " + sidecar_->stderrText());
  }
  checkPlace();
  if (!eventually([] { return descendantsOf(::getpid()).empty(); })) {
    fault("a process is left");
  }
  return std::move(faults_);
}

/// A template that was asked for is there whole or can be made; none that is there is anything else than whole.
void CrashWorld::checkTemplates() {
  const Json made = sidecar().call("backend.prewarm", {{"template", "t"}, {"files", templateFiles(variant_)}});
  const std::string path = templatePath(made.at("templateKey"));
  if (path.empty() || filesBelow(path + "/data") != expectedFiles(variant_)) {
    fault("the template is not whole: " + path);
  }
  for (const fs::path& backend : entriesOf(place_)) {
    for (const fs::path& one : entriesOf(backend / "templates")) {
      const Json ready = Json::parse(readFile(one / "ready"), nullptr, false);
      if (!ready.is_object() || ready.value("templateKey", "") != one.filename() ||
          filesBelow(one / "data").size() != expectedFiles("").size()) {
        fault("a template is there that is not whole: " + one.string());
      }
    }
  }
}

void CrashWorld::checkKnown() {
  if (!known_) {
    return;
  }
  const Json answer = sidecar().response(sidecar().request(
      "backend.create",
      {{"template", known_->state.at("templateKey")}, {"network", "deny-all"}, {"state", known_->state}}));
  if (answer.contains("error")) {
    const bool gone = answer.at("/error/data/code"_json_pointer) == "SANDBOX_STATE_MISMATCH";
    if (!known_->mayBeGone || !gone) {
      fault("the session cannot be attached: " + answer.dump() + "; " + sidecar().stderrText());
    }
    if (gone && !pathOf(known_->state).empty()) {
      fault("the session is half gone");
    }
    return;
  }
  const std::string handle = answer.at("result").at("handle");
  checkFiles(handle);
  checkArtifacts(handle);
  // As it is when nobody has it, and only then gone.
  sidecar().call("handle.stop", {{"handle", handle}});
  checkPlace();
  sidecar().call("handle.delete", {{"handle", handle}});
}

void CrashWorld::checkFiles(const std::string& handle) {
  const fs::path session = pathOf(known_->state);
  for (const auto& [path, contents] : known_->files) {
    const Json read =
        sidecar().response(sidecar().request("session.readTextFile", {{"handle", handle}, {"path", path}}));
    const bool missing =
        read.contains("error") && read["error"].value("/data/details/errno"_json_pointer, "") == "ENOENT";
    const std::string found = missing                  ? kNoFile
                              : read.contains("error") ? read["error"].dump()
                                                       : read.at("result").at("text").get<std::string>();
    if (contents.count(found) == 0) {
      fault(path + " holds what nobody wrote: " + found.substr(0, 200));
    }
  }
  for (const auto& [path, text] : filesBelow(session / "workspace")) {
    if (known_->files.count(path) == 0) {
      fault("a file that nobody made: " + path);
    }
  }
}

/// Those that are there are whole: known->artifact is what each holds.
void CrashWorld::checkArtifacts(const std::string& handle) {
  if (known_->artifact.empty()) {
    return;
  }
  const Json toolset = sidecar().call(
      "coding.create", {{"handle", handle}, {"authorize", "allow"}, {"executables", {{"sh", "/bin/sh"}}}});
  for (const fs::path& file : entriesOf(fs::path(pathOf(known_->state)) / "artifacts")) {
    const std::string reference = "artifact-" + file.filename().string();
    const Json answer = sidecar().response(sidecar().request(
        "coding.read_output", {{"toolset", toolset.at("toolset")}, {"input", {{"reference", reference}}}}));
    if (!answer.contains("result") || answer["result"].value("text", "") != known_->artifact) {
      fault("an artifact that is not whole: " + answer.dump().substr(0, 300));
    }
  }
}

/// Sessions that were made and that no host was told of are whole all the same.
void CrashWorld::checkOthers() {
  for (const fs::path& backend : entriesOf(place_)) {
    for (const fs::path& session : entriesOf(backend / "sessions")) {
      const Json state = Json::parse(readFile(session / "state.json"), nullptr, false);
      if (!state.is_object() || filesBelow(session / "workspace") != expectedFiles(variant_)) {
        fault("a session is there that is not whole: " + session.string());
        continue;
      }
      Session attached(sidecar(), "deny-all", state);
      sidecar().call("handle.delete", {{"handle", attached.handle()}});
    }
  }
}

// The sweep of the start goes on beside the first answers.
void CrashWorld::checkPlace() {
  std::vector<std::string> found;
  if (!eventually([&] { return (found = strays(place_)).empty(); })) {
    for (const std::string& stray : found) {
      fault("left over: " + stray);
    }
  }
}

// The sidecar, its warden, and launches that wait for nobody any more end with their handle.
void CrashWorld::checkGuests() {
  const auto others = [this] {
    std::vector<pid_t> left = descendantsOf(::getpid());
    left.erase(std::remove(left.begin(), left.end(), sidecar_->pid()), left.end());
    return left;
  };
  if (!eventually([&] { return others().empty(); })) {
    fault("processes are left");
  }
  reapOrphans({sidecar_->pid()});
}

}  // namespace stitchkit::testing
