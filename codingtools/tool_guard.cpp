#include "codingtools/tool_guard.h"

#include "codingtools/tool_path.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace stitchkit {

namespace json = boost::json;

namespace {

Error refused() {
  return Error(ErrorKind::kForbidden, "The host does not allow the operation");
}

Error noAnswer(const Error& cause) {
  if (cause.kind == ErrorKind::kCancelled) {
    return cause;
  }
  return Error(ErrorKind::kForbidden, "The host gave no permission")
      .withPrivate(cause.message + " " + cause.reason + " " + cause.privateDetail);
}

Error strangeAnswer() {
  return Error(ErrorKind::kForbidden, "The host gave no permission").withPrivate("its answer is of another shape");
}

const json::value* allowedMember(const json::value& answer) {
  const json::object* object = answer.if_object();
  return object != nullptr ? object->if_contains("allowed") : nullptr;
}

}  // namespace

Result<void> ToolGuard::authorize(const json::object& request, const std::stop_token& stop) const {
  switch (rules_.operations) {
    case GuardRules::Operations::kAllow:
      return {};
    case GuardRules::Operations::kDeny:
      return refused();
    case GuardRules::Operations::kAskHost:
      break;
  }
  const Result<json::value> answer = host_.ask("host.authorize", {{"toolset", toolset_}, {"request", request}}, stop);
  if (!answer) {
    return noAnswer(answer.error());
  }
  const json::value* allowed = allowedMember(*answer);
  if (allowed == nullptr || !allowed->is_bool()) {
    return strangeAnswer();
  }
  return allowed->as_bool() ? Result<void>() : refused();
}

Result<void> ToolGuard::checkAny() const {
  return rules_.operations == GuardRules::Operations::kDeny ? Result<void>(refused()) : Result<void>();
}

Result<void> ToolGuard::checkPath(const WorkspacePath& path, const std::stop_token& stop) const {
  if (allowsEveryPath()) {
    return {};
  }
  std::vector<std::string> outward{toolPathText(path)};
  for (WorkspacePath above = path.parent(); !path.isRoot() && !above.isRoot(); above = above.parent()) {
    outward.push_back(toolPathText(above));
  }
  // One by one: nothing below a denied one is asked about.
  for (auto at = outward.rbegin(); at != outward.rend(); ++at) {
    const Result<std::vector<bool>> answer = answersFor({*at}, stop);
    if (!answer) {
      return answer.error();
    }
    if (!answer->front()) {
      return Error(ErrorKind::kForbidden, "The path is not to be touched")
          .withDetail("path", *at)
          .withHint("It is kept from these tools; work with other files.");
    }
  }
  return {};
}

Result<std::vector<bool>> ToolGuard::answersFor(const std::vector<std::string>& paths,
                                                const std::stop_token& stop) const {
  std::vector<bool> answers(paths.size(), false);
  std::vector<std::string> asked;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!denies(paths[i])) {
      answers[i] = true;
      asked.push_back(paths[i]);
      places.push_back(i);
    }
  }
  if (!rules_.askAboutPaths || asked.empty()) {
    return answers;
  }
  Result<std::vector<bool>> told = askHost(asked, stop);
  if (!told) {
    return told;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    answers[places[i]] = (*told)[i];
  }
  return answers;
}

Result<std::vector<bool>> ToolGuard::askHost(const std::vector<std::string>& paths, const std::stop_token& stop) const {
  json::array list;
  list.reserve(paths.size());
  for (const std::string& path : paths) {
    list.emplace_back(path);
  }
  const Result<json::value> answer =
      host_.ask("host.authorizePaths", {{"toolset", toolset_}, {"paths", std::move(list)}}, stop);
  if (!answer) {
    return noAnswer(answer.error());
  }
  const json::value* allowed = allowedMember(*answer);
  if (allowed == nullptr || !allowed->is_array() || allowed->get_array().size() != paths.size()) {
    return strangeAnswer();
  }
  std::vector<bool> answers;
  for (const json::value& each : allowed->get_array()) {
    if (!each.is_bool()) {
      return strangeAnswer();
    }
    answers.push_back(each.as_bool());
  }
  return answers;
}

// With the directories above it, for tools that come to a path without having walked there.
bool ToolGuard::denies(const std::string& path) const {
  if (path == ".") {
    return false;  // the workspace itself, which no pattern means
  }
  const auto matches = [&](std::string_view text) {
    return std::any_of(rules_.denied.begin(), rules_.denied.end(),
                       [&](const GlobPattern& pattern) { return pattern.matches(text); });
  };
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    if (matches(std::string_view(path).substr(0, end))) {
      return true;
    }
  }
  return matches(path);
}

}  // namespace stitchkit
