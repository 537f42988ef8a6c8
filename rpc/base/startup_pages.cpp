#include "rpc/base/startup_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace stitchkit {
namespace {

// Only segments that never were writable: relocations made the others differ from their files, read-only as some are
// now.
int releaseObject(dl_phdr_info* object, std::size_t /*size*/, void* /*data*/) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // the vdso says no, which is all right
  }
  return 0;
}

}  // namespace

void releaseStartupPages() noexcept {
  ::dl_iterate_phdr(releaseObject, nullptr);
}

}  // namespace stitchkit
