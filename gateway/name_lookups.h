// The lookups of one part of a handle's gateway: one a name at a time, however many requests wait for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gateway/name_lookup.h"

namespace stitchkit {

/// One thread. Nothing is remembered: a request that comes after the answer has the name looked up again.
class NameLookups : public std::enable_shared_from_this<NameLookups> {
 public:
  using Done = std::function<void(Result<Endpoints>)>;

  NameLookups(boost::asio::io_context& context, LookupFunction lookup, bool privateNames)
      : context_(context), lookup_(std::move(lookup)), privateNames_(privateNames) {}

  /// As addressesOf(). A resolver that does not answer holds one thread a name, and few names at once, so that a guest
  /// cannot keep it from other handles.
  void find(const Origin& origin, Done done);

 private:
  void answer(const std::string& key, const Result<Endpoints>& found);

  boost::asio::io_context& context_;
  LookupFunction lookup_;
  bool privateNames_;
  std::map<std::string, std::vector<Done>> waiting_;  // by host and port
};

}  // namespace stitchkit
