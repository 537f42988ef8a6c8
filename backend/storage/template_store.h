// Templates on disk: built aside, published by one rename, never changed afterwards.
#pragma once

#include "backend/storage/layout.h"
#include "backend/storage/template_key.h"
#include "codingtools/durability.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// Thread-safe, and safe beside other processes on the same state directory. Blocks on the disk.
class TemplateStore {
 public:
  struct Prewarmed {
    bool reused;  ///< it was there already, by us or by somebody else meanwhile
    std::string templateKey;
  };

  explicit TemplateStore(Layout layout, Durability durability = {})
      : layout_(std::move(layout)), durability_(durability) {}

  /// Makes the template unless it is there and whole. One whose `ready` or `data` is missing or wrong is made anew.
  /// Files are 0600, directories 0700. Errors: those of arrangeTemplate(); kLimit with reason "storage"; kInternal;
  /// kCancelled.
  [[nodiscard]] Result<Prewarmed> prewarm(std::string_view templateName, const std::vector<TemplateFile>& files,
                                          const std::stop_token& stop = {}) const;

  /// The template's data directory, for copying from. kStateMismatch when there is no whole template of this key.
  [[nodiscard]] Result<UniqueFd> open(const std::string& templateKey) const;

 private:
  [[nodiscard]] Result<bool> publish(int staging, const std::string& key) const;

  Layout layout_;
  Durability durability_;
};

}  // namespace stitchkit
