#include "backend/doctor/report.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>

#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

const char* mark(FindingStatus status) {
  switch (status) {
    case FindingStatus::kOk:
      return "[ok]   ";
    case FindingStatus::kWarning:
      return "[warn] ";
    case FindingStatus::kFailed:
      break;
  }
  return "[FAIL] ";
}

const char* word(FindingStatus status) {
  switch (status) {
    case FindingStatus::kOk:
      return "ok";
    case FindingStatus::kWarning:
      return "warning";
    case FindingStatus::kFailed:
      break;
  }
  return "failed";
}

// What a program has said may have lines and control characters.
std::string oneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return toUtf8(text);
}

}  // namespace

bool isolationWorks(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.status == FindingStatus::kFailed; });
}

std::string textReport(const std::vector<Finding>& findings) {
  std::string lines;
  std::string advice;
  std::set<std::string> advised;
  for (const Finding& finding : findings) {
    lines += mark(finding.status) + finding.name + ": " + oneLine(finding.message) + '\n';
    if (!finding.hint.empty() && advised.insert(finding.cause).second) {
      advice += "  " + finding.cause + ": " + finding.hint + '\n';
    }
  }
  if (!advice.empty()) {
    lines += "\nWhat to do:\n" + advice;
  }
  return lines + (isolationWorks(findings) ? "\nIsolation works here.\n" : "\nIsolation does not work here.\n");
}

std::string jsonReport(const std::vector<Finding>& findings) {
  boost::json::array checks;
  for (const Finding& finding : findings) {
    boost::json::object check{
        {"name", finding.name}, {"status", word(finding.status)}, {"message", oneLine(finding.message)}};
    if (!finding.cause.empty()) {
      check["cause"] = finding.cause;
    }
    if (!finding.hint.empty()) {
      check["hint"] = finding.hint;
    }
    checks.push_back(std::move(check));
  }
  const boost::json::object document{
      {"ok", isolationWorks(findings)}, {"version", STITCHKIT_VERSION}, {"checks", std::move(checks)}};
  return boost::json::serialize(document) + '\n';
}

}  // namespace stitchkit
