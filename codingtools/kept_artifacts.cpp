#include "codingtools/kept_artifacts.h"

#include "codingtools/artifact_lines.h"
#include "codingtools/file_error.h"
#include "codingtools/text_window.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <sys/mman.h>

#include <cerrno>

namespace stitchkit {

namespace json = boost::json;

namespace {

/// A file of ours, which no guest can reach and which never changes, in memory.
class MappedFile {
 public:
  MappedFile(int fd, std::size_t size) : size_(size), address_(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0)) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (address_ != MAP_FAILED) {
      ::munmap(address_, size_);
    }
  }

  explicit operator bool() const { return address_ != MAP_FAILED; }
  [[nodiscard]] std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  std::size_t size_;
  void* address_;
};

}  // namespace

Result<std::string> KeptArtifacts::write(std::string_view content, const json::object& request,
                                         const std::stop_token& /*stop*/) const {
  return store_.write(content, json::serialize(request));
}

Result<std::optional<json::object>> KeptArtifacts::authorization(const std::string& reference,
                                                                 const std::stop_token& /*stop*/) const {
  const Result<OpenedArtifact> artifact = store_.open(reference);
  if (!artifact) {
    return artifact.error();
  }
  boost::system::error_code error;
  json::value request = json::parse(artifact->request, error);
  if (error || !request.is_object()) {
    return internalError("The artifact is damaged", "parse its request", EILSEQ);
  }
  return std::optional(std::move(request.get_object()));
}

Result<ArtifactWindow> KeptArtifacts::read(const std::string& reference, std::uint64_t offset, std::size_t maxBytes,
                                           const std::stop_token& /*stop*/) const {
  const Result<OpenedArtifact> artifact = store_.open(reference);
  if (!artifact) {
    return artifact.error();
  }
  if (offset >= artifact->bytes) {
    return ArtifactWindow{offset, {}, 0, artifact->bytes};
  }
  const auto begin = static_cast<std::uint64_t>(artifact->begin);
  Result<TextWindow> window = readTextWindow(artifact->fd.get(), begin + offset, maxBytes, Malformed::kReplaced);
  if (!window) {
    return std::move(window).error();
  }
  return ArtifactWindow{window->end - window->bytes - begin, std::move(window->text), window->bytes, artifact->bytes};
}

Result<std::vector<ArtifactMatch>> KeptArtifacts::search(const std::string& reference, const std::string& query,
                                                         std::size_t maxMatches, const std::stop_token& stop) const {
  const Result<OpenedArtifact> artifact = store_.open(reference);
  if (!artifact) {
    return artifact.error();
  }
  const auto begin = static_cast<std::size_t>(artifact->begin);
  const MappedFile file(artifact->fd.get(), begin + artifact->bytes);
  if (!file) {
    return internalError("The artifact cannot be read", "mmap", errno);
  }
  return matchingLines(file.bytes().substr(begin), query, maxMatches, stop);
}

}  // namespace stitchkit
