#define _GNU_SOURCE
#include "guest_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int createParents(char* path) {
  for (char* slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    const int failed = mkdir(path, 0755) != 0 && errno != EEXIST && errno != EROFS;
    *slash = '/';
    if (failed) {
      return -1;
    }
  }
  return 0;
}

int openInGuest(char* path, const struct LaunchPathHeader* request) {
  if (request->createParents != 0 && createParents(path) != 0) {
    return -1;
  }
  int fd;
  do {
    fd = open(path, (int)request->flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, (mode_t)request->mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/* A directory on the way down, so that ".." is known to lead back where we came from: another guest of the session
 * may move directories meanwhile. */
struct Level {
  dev_t device;
  ino_t inode;
};

struct Walk {
  struct Level* levels;
  size_t depth;
  size_t capacity;
};

static int pushLevel(struct Walk* walk, int directory) {
  struct stat status;
  if (fstat(directory, &status) != 0) {
    return -1;
  }
  if (walk->depth == walk->capacity) {
    const size_t capacity = walk->capacity == 0 ? 64 : walk->capacity * 2;
    struct Level* levels = realloc(walk->levels, capacity * sizeof *levels);
    if (levels == NULL) {
      return -1;
    }
    walk->levels = levels;
    walk->capacity = capacity;
  }
  walk->levels[walk->depth].device = status.st_dev;
  walk->levels[walk->depth].inode = status.st_ino;
  ++walk->depth;
  return 0;
}

static int openDirectory(int parent, const char* name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int missing(void) {
  return errno == ENOENT;
}

/* Removes what `directory` holds. Returns 1 and a descriptor in `*below` when it met a directory that is not empty,
 * 0 when all is gone, -1 on failure. Takes over `directory`. */
static int emptyOrDescend(DIR* stream, int* below) {
  const int directory = dirfd(stream);
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(stream);
    if (entry == NULL) {
      return errno == 0 ? 0 : -1;
    }
    const char* name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
      continue;
    }
    if (entry->d_type != DT_DIR && (unlinkat(directory, name, 0) == 0 || missing())) {
      continue;
    }
    if (entry->d_type != DT_DIR && errno != EISDIR && errno != EPERM) {
      return -1;
    }
    if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || missing()) {
      continue;
    }
    if (errno != ENOTEMPTY && errno != EEXIST) {
      return -1;
    }
    *below = openDirectory(directory, name);
    return *below >= 0 ? 1 : -1;
  }
}

/* One descriptor at a time, so that depth costs neither descriptors nor stack. What was read before a descent is gone
 * by then, so that reading a directory anew does not repeat work. */
static int emptyTree(struct Walk* walk, int directory) {
  if (pushLevel(walk, directory) != 0) {
    close(directory);
    return -1;
  }
  for (;;) {
    DIR* stream = fdopendir(directory);
    if (stream == NULL) {
      close(directory);
      return -1;
    }
    int next = -1;
    int outcome = emptyOrDescend(stream, &next);
    if (outcome == 0 && walk->depth > 1) {
      next = openat(dirfd(stream), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      outcome = next >= 0 ? 2 : -1;
    }
    const int error = errno;
    closedir(stream);
    errno = error;
    if (outcome <= 0) {
      return outcome;
    }
    if (outcome == 1) {
      if (pushLevel(walk, next) != 0) {
        close(next);
        return -1;
      }
    } else {
      struct stat status;
      --walk->depth;
      const struct Level* parent = &walk->levels[walk->depth - 1];
      if (fstat(next, &status) != 0 || status.st_dev != parent->device || status.st_ino != parent->inode) {
        close(next);
        errno = EBUSY;
        return -1;
      }
    }
    directory = next;
  }
}

int removeInGuest(const char* path) {
  if (unlink(path) == 0 || missing() || errno == ENOTDIR) {
    return 0;
  }
  if (errno != EISDIR && errno != EPERM) {
    return -1;
  }
  if (rmdir(path) == 0 || missing()) {
    return 0;
  }
  if (errno != ENOTEMPTY && errno != EEXIST) {
    return -1;
  }
  const int directory = openDirectory(AT_FDCWD, path);
  if (directory < 0) {
    return missing() ? 0 : -1;
  }
  struct Walk walk = {NULL, 0, 0};
  const int outcome = emptyTree(&walk, directory);
  const int error = errno;
  free(walk.levels);
  errno = error;
  if (outcome != 0) {
    return -1;
  }
  return rmdir(path) == 0 || missing() ? 0 : -1;
}
