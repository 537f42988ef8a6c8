#include "codingtools/search_batch.h"

#include "codingtools/contained_open.h"
#include "codingtools/regular_file.h"
#include "rpc/base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace stitchkit {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

using Outcome = SearchBatch::Outcome;

/// Content that stays valid until the buffer is used again, or why there is none.
struct Content {
  std::string_view text;
  Outcome outcome = Outcome::kSearched;
};

/// A file of a device other than the workspace's: with all the care of readRegular().
Content readElsewhere(int fd, std::size_t maxBytes, ReadBuffer& buffer) {
  const Result<std::string> content = readRegular(fd, maxBytes);
  if (!content) {
    return {{}, content.error().kind == ErrorKind::kLimit ? Outcome::kLeftOut : Outcome::kPassedOver};
  }
  char* const bytes = buffer.reserve(content->size() + 1, 0);
  content->copy(bytes, content->size());
  return {{bytes, content->size()}, Outcome::kSearched};
}

/// A read that gives exactly what the size said is the whole file. Others may change it meanwhile.
Content readWhole(int fd, std::size_t size, std::size_t maxBytes, ReadBuffer& buffer) {
  std::size_t capacity = size + 1;
  char* bytes = buffer.reserve(capacity, 0);
  std::size_t filled = 0;
  for (bool first = true;; first = false) {
    const ssize_t got = ::pread(fd, bytes + filled, capacity - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return {{}, Outcome::kLeftOut};
    }
    filled += static_cast<std::size_t>(got);
    if (filled > maxBytes) {
      return {{}, Outcome::kLeftOut};
    }
    if (got == 0 || (first && filled == size)) {
      return {{bytes, filled}, Outcome::kSearched};
    }
    if (filled == capacity) {
      capacity = std::min(maxBytes, 2 * filled) + 1;
      bytes = buffer.reserve(capacity, filled);
    }
  }
}

Content read(int directory, const char* name, const BatchLimits& limits, ReadBuffer& buffer) {
  const OpenOutcome opened = openSegment(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened.fd) {
    const bool gone = opened.error == ENOENT || opened.error == ELOOP || opened.error == ENXIO;
    return {{}, gone ? Outcome::kPassedOver : Outcome::kLeftOut};
  }
  struct stat status {};
  if (::fstat(opened.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {{}, Outcome::kPassedOver};
  }
  if (static_cast<std::uint64_t>(status.st_size) > limits.maxReadBytes) {
    return {{}, Outcome::kLeftOut};
  }
  if (status.st_dev != limits.device) {
    return readElsewhere(opened.fd.get(), limits.maxReadBytes, buffer);
  }
  if (status.st_size == 0) {
    return {};
  }
  return readWhole(opened.fd.get(), static_cast<std::size_t>(status.st_size), limits.maxReadBytes, buffer);
}

}  // namespace

char* ReadBuffer::reserve(std::size_t bytes, std::size_t kept) {
  if (bytes > size_) {
    const std::size_t size = std::max<std::size_t>(bytes, 16UL * 1024);
    auto larger = std::make_unique_for_overwrite<char[]>(size);
    if (kept > 0) {
      std::memcpy(larger.get(), bytes_.get(), kept);
    }
    bytes_ = std::move(larger);
    size_ = size;
  }
  return bytes_.get();
}

bool SearchBatch::add(const WalkedFile& file, const WalkCounts& counts) {
  if (files_.size() == kMostFiles || (directory_ && directory_ != file.directory)) {
    return false;
  }
  directory_ = file.directory;
  files_.push_back(
      {std::string(file.path), static_cast<std::size_t>(file.name - file.path.data()), counts, {}, {}, {}});
  return true;
}

void SearchBatch::search(const LineSearch& search, const BatchLimits& limits, ReadBuffer& buffer,
                         const std::stop_token& stop) {
  std::size_t lines = 0;
  for (File& file : files_) {
    if (lines >= limits.maxLines || stop.stop_requested()) {
      break;
    }
    Content content = read(directory_->get(), file.path.c_str() + file.nameBegin, limits, buffer);
    file.outcome = content.outcome;
    if (content.outcome != Outcome::kSearched) {
      continue;
    }
    if (content.text.starts_with(kByteOrderMark)) {
      content.text.remove_prefix(kByteOrderMark.size());
    }
    file.found = search.search(content.text, limits.maxLines, stop);
    // Whether it is text matters only where something was found.
    if ((!file.found.lines.empty() || file.found.longLines) && !isUtf8(content.text)) {
      file.found = {};
    }
    if (!file.found.lines.empty()) {
      file.text = content.text;
      textBytes_ += file.text.size();
      lines += file.found.lines.size();
    }
  }
  directory_.reset();
}

}  // namespace stitchkit
