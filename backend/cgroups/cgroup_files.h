// The files of a control group: small texts that are read and written whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stitchkit {

/// "" when it cannot be read.
std::string readCgroupFile(const std::string& path);

/// In one write, as the kernel wants it. 0, or an errno.
int writeCgroupFile(const std::string& path, std::string_view text) noexcept;

/// The number behind `name` and a space at the start of a line; 0 when there is none.
std::uint64_t cgroupCounter(std::string_view text, std::string_view name);

/// Removes `directory` and the groups below it; those that hold a process stay, and those above them. Whether all is
/// gone.
bool removeCgroups(const std::string& directory);

}  // namespace stitchkit
