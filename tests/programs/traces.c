// What one command could find of another. `leave` makes one of each and ends, but for a child that stays; `look` tries
// to find each.
#include "report.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char name[] = "left-behind";
enum { kKey = 0x57175 };

static struct sockaddr_un abstractName(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + 1, name, sizeof name - 1);
  return address;
}
static const socklen_t abstractSize = offsetof(struct sockaddr_un, sun_path) + sizeof name;

static long findProcess(void) {
  DIR* all = opendir("/proc");
  for (const struct dirent* entry; all != NULL && (entry = readdir(all)) != NULL;) {
    char path[300];
    char text[64] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
    const int file = isdigit((unsigned char)entry->d_name[0]) ? open(path, O_RDONLY) : -1;
    if (file >= 0 && read(file, text, sizeof text - 1) > 0 && strncmp(text, name, sizeof name - 1) == 0) {
      return 0;
    }
    close(file);
  }
  errno = ESRCH;
  return -1;
}

static void look(void) {
  const struct sockaddr_un address = abstractName();
  report("tmp", access("/tmp/left-behind", F_OK));
  report("dev-shm", access("/dev/shm/left-behind", F_OK));
  report("abstract", connect(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr*)&address, abstractSize));
  report("shm", shmget(kKey, 0, 0));
  report("msg", msgget(kKey, 0));
  report("sem", semget(kKey, 0, 0));
  report("mq", mq_open("/left-behind", O_RDONLY));
  report("process", findProcess());
}

static void leave(void) {
  const struct sockaddr_un address = abstractName();
  report("leave-tmp", open("/tmp/left-behind", O_CREAT | O_WRONLY, 0666));
  report("leave-dev-shm", open("/dev/shm/left-behind", O_CREAT | O_WRONLY, 0666));
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  report("leave-abstract", bind(listener, (const struct sockaddr*)&address, abstractSize));
  listen(listener, 16);
  report("leave-shm", shmget(kKey, 4096, IPC_CREAT | 0666));
  report("leave-msg", msgget(kKey, IPC_CREAT | 0666));
  report("leave-sem", semget(kKey, 1, IPC_CREAT | 0666));
  report("leave-mq", mq_open("/left-behind", O_CREAT | O_RDONLY, 0666, NULL));
  int named[2];
  if (pipe(named) != 0) {
    return;
  }
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, name);
    setsid();
    for (int signal = 1; signal < 32; ++signal) {
      (void)!sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    }
    for (int stream = 0; stream < 3; ++stream) {
      close(stream);
    }
    close(named[0]);
    close(named[1]);
    for (;;) {
      pause();
    }
  }
  char unused;
  close(named[1]);
  (void)!read(named[0], &unused, 1);  // its end, when the child has its name
  report("leave-process", child);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "leave") == 0) {
    leave();
  } else {
    look();
  }
  return 0;
}
