// One keep-alive HTTP/1.1 client, the same for every server that the benchmark compares.
//   http_client TARGET HOST latency COUNT: COUNT requests one after another; a line of nanoseconds for each
//   http_client TARGET HOST load START MILLISECONDS: as many as fit between the instant START (CLOCK_MONOTONIC,
//     nanoseconds) and so much later; says how many
// TARGET is `unix:PATH` or `tcp:PORT` (of 127.0.0.1). Anything but a 200 with 1 KiB ends it with exit code 1.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { kBody = 1024, kBuffer = 16384 };

static char request[512];
static size_t requestSize;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void giveUp(const char* what) {
  fprintf(stderr, "http_client: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int connectTo(const char* target) {
  int end = -1;
  if (strncmp(target, "unix:", 5) == 0) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", target + 5);
    end = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(end, (struct sockaddr*)&address, sizeof address) == 0) {
      return end;
    }
  } else {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(target + 4))};
    const int noDelay = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    end = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &noDelay, sizeof noDelay);
    if (connect(end, (struct sockaddr*)&address, sizeof address) == 0) {
      return end;
    }
  }
  giveUp("connect");
  return -1;
}

// One request and its whole answer.
static void exchange(int server) {
  static char buffer[kBuffer];
  if (write(server, request, requestSize) != (ssize_t)requestSize) {
    giveUp("write");
  }
  size_t size = 0;
  const char* headerEnd = NULL;
  while (headerEnd == NULL || size < (size_t)(headerEnd - buffer) + 4 + kBody) {
    const ssize_t got = read(server, buffer + size, sizeof buffer - 1 - size);
    if (got <= 0) {
      giveUp("read");
    }
    size += (size_t)got;
    buffer[size] = '\0';
    if (headerEnd == NULL) {
      headerEnd = strstr(buffer, "\r\n\r\n");
    }
  }
  if (strncmp(buffer, "HTTP/1.1 200 ", 13) != 0 || size != (size_t)(headerEnd - buffer) + 4 + kBody) {
    errno = EBADMSG;
    giveUp("answer");
  }
}

static void measureLatency(int server, int count) {
  int64_t* times = calloc((size_t)count, sizeof *times);
  for (int i = 0; i < count; ++i) {
    const int64_t start = now();
    exchange(server);
    times[i] = now() - start;
  }
  for (int i = 0; i < count; ++i) {
    printf("%lld\n", (long long)times[i]);
  }
}

static void measureLoad(int server, int64_t start, int64_t duration) {
  const struct timespec instant = {start / 1000000000, start % 1000000000};
  exchange(server);
  if (now() >= start) {
    errno = ETIME;
    giveUp("the start");
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &instant, NULL) == EINTR) {
  }
  long count = 0;
  for (; now() < start + duration; ++count) {
    exchange(server);
  }
  printf("%ld\n", count);
}

int main(int argc, char** argv) {
  if (argc < 5) {
    return 2;
  }
  requestSize = (size_t)snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", argv[2]);
  const int server = connectTo(argv[1]);
  if (strcmp(argv[3], "latency") == 0) {
    exchange(server);
    measureLatency(server, atoi(argv[4]));
  } else if (argc > 5) {
    measureLoad(server, atoll(argv[4]), atoll(argv[5]) * 1000000);
  }
  return 0;
}
