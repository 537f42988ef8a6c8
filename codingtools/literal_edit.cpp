#include "codingtools/literal_edit.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace stitchkit {

namespace {

std::vector<std::size_t> findAll(std::string_view content, std::string_view text) {
  std::vector<std::size_t> found;
  const std::boyer_moore_horspool_searcher searcher(text.begin(), text.end());
  for (auto at = content.begin();;) {
    at = std::search(at, content.end(), searcher);
    if (at == content.end()) {
      return found;
    }
    found.push_back(static_cast<std::size_t>(at - content.begin()));
    at += static_cast<std::ptrdiff_t>(text.size());
  }
}

std::string withoutCarriageReturns(std::string_view text) {
  std::string result(text);
  std::erase(result, '\r');
  return result;
}

/// Every line without the spaces and tabs that it begins with.
std::string withoutIndentation(std::string_view text) {
  std::string result;
  bool atStart = true;
  for (const char c : text) {
    atStart = c == '\n' || (atStart && (c == ' ' || c == '\t'));
    if (!atStart || c == '\n') {
      result += c;
    }
  }
  return result;
}

std::string hintFor(std::string_view content, std::string_view oldText) {
  const std::string plainContent = withoutCarriageReturns(content);
  const std::string plainText = withoutCarriageReturns(oldText);
  if (plainText.empty()) {
    return "Read the file again and copy the text from it exactly.";
  }
  if (plainContent.find(plainText) != std::string::npos) {
    return plainContent.size() == content.size()
               ? "Only the line ends differ: the file has no carriage returns, oldText has."
               : "Only the line ends differ: the file ends lines with \\r\\n; oldText must have them too.";
  }
  const std::string flatText = withoutIndentation(plainText);
  if (!flatText.empty() && flatText != "\n" && withoutIndentation(plainContent).find(flatText) != std::string::npos) {
    return "Only white space at the beginning of lines differs: copy it exactly as the file has it.";
  }
  return "Read the file again and copy the text from it exactly.";
}

}  // namespace

Result<Edited> replaceLiteral(std::string_view content, std::string_view oldText, std::string_view newText, bool all) {
  const std::vector<std::size_t> found = findAll(content, oldText);
  if (found.empty()) {
    return Error(ErrorKind::kNotFound, "The text does not occur in the file")
        .withDetail("occurrences", 0)
        .withHint(hintFor(content, oldText));
  }
  if (found.size() > 1 && !all) {
    return Error(ErrorKind::kConflict, "The text occurs several times in the file")
        .withDetail("occurrences", static_cast<std::int64_t>(found.size()))
        .withHint("Give more of the text around the one that is meant, or set replaceAll.");
  }
  Edited edited;
  edited.replacements = found.size();
  edited.content.reserve(content.size() - found.size() * oldText.size() + found.size() * newText.size());
  std::size_t done = 0;
  for (const std::size_t at : found) {
    edited.content.append(content, done, at - done).append(newText);
    done = at + oldText.size();
  }
  edited.content.append(content, done);
  return edited;
}

}  // namespace stitchkit
