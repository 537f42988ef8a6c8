#include <algorithm>

#include "tests/soak/operations.h"

namespace stitchkit::soak {
namespace {

constexpr std::size_t kFiles = 24;  // names in use

std::size_t someSize(Dice& dice) {
  switch (dice.below(12)) {
    case 0:
      return 0;
    case 1:
      return 200'000 + dice.below(800'000);
    default:
      return dice.below(20'000);
  }
}

}  // namespace

std::string claim(Rig& rig, Room& room, bool existing) {
  const std::size_t number = rig.dice().below(kFiles);
  const std::string path = "d" + std::to_string(number % 4) + "/f" + std::to_string(number) + ".txt";
  const auto file = room.files.find(path);
  if (room.claimed.count(path) != 0 || (existing && file == room.files.end())) {
    return "";
  }
  room.claimed[path] = {file == room.files.end() ? Content() : Content(file->second)};
  return path;
}

bool writeText(Rig& rig, Room& room) {
  const std::string path = claim(rig, room, false);
  if (path.empty()) {
    return false;
  }
  std::string text = rig.dice().text(someSize(rig.dice()));
  room.claimed[path].push_back(text);
  rig.begin("write", "session.writeTextFile", {{"handle", room.handle()}, {"path", path}, {"text", text}},
            [&room, path, text](const Json& answer) {
              if (resultOf(answer).at("bytes") != text.size()) {
                wrong("bytes written", answer);
              }
              room.files[path] = text;
            });
  return true;
}

bool readText(Rig& rig, Room& room) {
  const std::string path = claim(rig, room, true);
  if (path.empty()) {
    return writeText(rig, room);
  }
  rig.begin("read", "session.readTextFile", {{"handle", room.handle()}, {"path", "/workspace/" + path}},
            [content = room.files[path]](const Json& answer) {
              if (resultOf(answer).at("text") != content) {
                wrong("not what was written", answer);
              }
            });
  return true;
}

bool readMissing(Rig& rig, Room& room) {
  const bool outside = rig.dice().oneIn(2);
  rig.begin("read nothing", "session.readBinaryFile",
            {{"handle", room.handle()}, {"path", outside ? "../state.json" : "nowhere/to/be/found"}},
            [](const Json& answer) { requireError(answer, "SANDBOX_PATH"); });
  return true;
}

bool removeFile(Rig& rig, Room& room) {
  const std::string path = claim(rig, room, false);
  if (path.empty()) {
    return false;
  }
  room.claimed[path].push_back(std::nullopt);
  rig.begin("remove", "session.removePath", {{"handle", room.handle()}, {"path", path}},
            [&room, path](const Json& answer) {
              resultOf(answer);
              room.files.erase(path);
            });
  return true;
}

bool badParameters(Rig& rig, Room& room) {
  switch (rig.dice().below(3)) {
    case 0:
      rig.begin("bad parameters", "session.readTextFile", {{"handle", room.handle()}, {"path", 1}, {"more", true}},
                [](const Json& answer) { requireError(answer, "VALIDATION_ERROR"); });
      break;
    case 1:
      rig.begin("unknown handle", "handle.probe", {{"handle", "h99999999"}},
                [](const Json& answer) { requireError(answer, "NOT_FOUND"); });
      break;
    default:
      rig.begin("unknown method", "session.dance", {{"handle", room.handle()}},
                [](const Json& answer) { requireError(answer, "METHOD_NOT_FOUND"); });
  }
  return true;
}

}  // namespace stitchkit::soak
