#include "conformance/report.h"

#include <sstream>

namespace conformance {
namespace {

void printIndented(std::ostream& out, const std::string& title, const std::string& text, std::size_t maxLines) {
  if (text.empty()) {
    return;
  }
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  const std::size_t first = lines.size() > maxLines ? lines.size() - maxLines : 0;
  out << "  " << title << "\n";
  for (std::size_t i = first; i < lines.size(); ++i) {
    out << "    " << lines[i] << "\n";
  }
}

}  // namespace

void printFailure(std::ostream& out, const Case& testCase, const Failure& failure) {
  out << "FAILED " << testCase.file << ": " << testCase.name << "\n";
  out << "  " << testCase.about << "\n";
  printIndented(out, "step " + failure.step, failure.sent, 10);
  printIndented(out, "what is wrong", failure.problem, 30);
  printIndented(out, "messages that were not asked for", failure.unread, 10);
  printIndented(out, "stderr of the implementation, its end", failure.errors, 15);
  out << "\n";
}

}  // namespace conformance
