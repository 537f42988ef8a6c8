// The pages of libraries that only their start needed.
#pragma once

namespace stitchkit {

/// Unmaps what the dynamic linker and the initialisation of libraries touched of code and constants: megabytes of
/// symbol tables and set-up that nothing looks at again. What is needed after all comes back from the page cache,
/// unread from disk as a rule. To be called once, when the program has come to work.
void releaseStartupPages() noexcept;

}  // namespace stitchkit
