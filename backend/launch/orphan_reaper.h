// Reaping what sandboxes leave to their nearest living ancestor.
//
// When an outer bwrap ends, the first process of its namespace is still on its way out, and becomes the child of the
// next process above that takes orphans. Where that is a PID 1 that never waits (a container's, often), each command
// would leave a zombie. So we take them ourselves.
#pragma once

#include <sys/types.h>

#include <boost/asio/signal_set.hpp>

namespace stitchkit {

/// One a process, made before the first sandbox. Loop thread only, like all of this.
class OrphanReaper {
 public:
  explicit OrphanReaper(boost::asio::io_context& io);
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;
  ~OrphanReaper();

 private:
  void await();

  boost::asio::signal_set ended_;
};

/// A child whose status somebody wants: it is left alone until collectedChild().
void expectChild(pid_t child);
/// The child was waited for.
void collectedChild(pid_t child);

}  // namespace stitchkit
