// A hostile client of the gateway. Arguments: MODE HOST [NUMBER [WORD]]; HOST goes into `Host`. STITCHKIT_TEST_SOCKET
// names another socket than /run/stitchkit-network.sock.
//   get PATH COUNT          so many requests on one connection
//   line BYTES | header BYTES   a request line, a header, of so many bytes without an end
//   headers COUNT           so many headers
//   dribble COUNT           so many connections that send their header a byte at a time; with all of them at it, one
//                           request more; then waits for their ends
//   slow-bodies COUNT       so many requests whose bodies come a byte at a time; waits for their ends, then asks again
//   bodies BYTES declared|chunked COUNT   so many bodies of so many bytes at once
//   idle COUNT              so many connections without a byte; says `open`, then waits for their ends
//   pending COUNT PATH      so many requests that nobody waits for the answers of: says `sent`, then sleeps
//   unread COUNT PATH       the same, but waits for the gateway to give each up, then asks again
//   flood COUNT             so many connections that send requests as fast as they are answered; never ends
//   forbidden COUNT         so many connections that send TRACE as fast as they can; says `begun`; never ends
//   descriptors COUNT       a request in pieces, each with so many descriptors passed along
// Prints `status=NUMBER` and the like, a line each; an answer that did not come is `status=none`.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 256, kPatience = 45000, kPause = 50 };

static const char* host;

static int dial(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char* path = getenv("STITCHKIT_TEST_SOCKET");
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path != NULL ? path : "/run/stitchkit-network.sock");
  const int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(end, (struct sockaddr*)&address, sizeof address) < 0) {
    report("connect", -1);
    exit(1);
  }
  return end;
}

// False when the other side has had enough.
static int sendBytes(int end, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(end, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) {
      return 0;
    }
    bytes += sent;
    size -= (size_t)sent;
  }
  return 1;
}

static int sendText(int end, const char* text) {
  return sendBytes(end, text, strlen(text));
}

static int sendRequest(int end, const char* method, const char* path, const char* more) {
  char text[1024];
  snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, path, host, more);
  return sendText(end, text);
}

static int waitFor(int end, short events, int milliseconds) {
  struct pollfd waiter = {end, events, 0};
  return poll(&waiter, 1, milliseconds) > 0;
}

// The status of the next answer, 0 for none; its body is read and dropped.
static int readAnswer(int end) {
  static char bytes[65536];
  size_t size = 0;
  const char* body = NULL;
  while (body == NULL && size + 1 < sizeof bytes && waitFor(end, POLLIN, kPatience)) {
    const ssize_t got = recv(end, bytes + size, sizeof bytes - 1 - size, 0);
    if (got <= 0) {
      return 0;
    }
    size += (size_t)got;
    bytes[size] = '\0';
    body = strstr(bytes, "\r\n\r\n");
  }
  if (body == NULL || strncmp(bytes, "HTTP/1.1 ", 9) != 0) {
    return 0;
  }
  const int status = atoi(bytes + 9);
  const char* length = strcasestr(bytes, "content-length:");
  size_t left = length == NULL || length > body ? 0 : (size_t)atol(length + 15);
  left -= size - (size_t)(body + 4 - bytes) < left ? size - (size_t)(body + 4 - bytes) : left;
  while (left > 0) {
    const ssize_t got = recv(end, bytes, left < sizeof bytes ? left : sizeof bytes, 0);
    if (got <= 0) {
      return 0;
    }
    left -= (size_t)got;
  }
  return status;
}

static void say(const char* name, int status) {
  if (status == 0) {
    printf("%s=none\n", name);
  } else {
    printf("%s=%d\n", name, status);
  }
  fflush(stdout);
}

static int ask(const char* path) {
  const int end = dial();
  const int status = sendRequest(end, "GET", path, "") ? readAnswer(end) : 0;
  close(end);
  return status;
}

static void get(const char* path, int count) {
  const int end = dial();
  for (int i = 0; i < count; ++i) {
    say("status", sendRequest(end, "GET", path, "") ? readAnswer(end) : 0);
  }
}

static void endless(const char* start, long bytes) {
  static char part[65536];
  memset(part, 'A', sizeof part);
  const int end = dial();
  long sent = 0;
  if (sendText(end, start)) {
    while (sent < bytes && sendBytes(end, part, sizeof part)) {
      sent += (long)sizeof part;
    }
  }
  printf("whole=%s\n", sent < bytes ? "no" : "yes");
  say("status", readAnswer(end));
}

static void manyHeaders(int count) {
  const int end = dial();
  char line[64];
  int open = sendText(end, "GET / HTTP/1.1\r\n");
  for (int i = 0; i < count && open; ++i) {
    snprintf(line, sizeof line, "X-%d: v\r\n", i);
    open = sendText(end, line);
  }
  snprintf(line, sizeof line, "Host: %s\r\n\r\n", host);
  sendText(end, line);
  say("status", readAnswer(end));
}

// Waits for the end of each connection, its answer read or not, and says how many ended.
static int waitForEnds(const int* ends, int count, int readThem) {
  int over = 0;
  for (int i = 0; i < count; ++i) {
    if (readThem) {
      say("ended", readAnswer(ends[i]));
      ++over;
    } else {
      struct pollfd waiter = {ends[i], 0, 0};  // POLLHUP needs no asking
      over += poll(&waiter, 1, kPatience) == 1;
    }
  }
  return over;
}

static void dribble(int count) {
  int ends[kMost];
  static const char kSlow[] =
      "GET / HTTP/1.1\r\nHost: slow\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  for (int i = 0; i < count; ++i) {
    ends[i] = dial();
    sendBytes(ends[i], kSlow, 1);
  }
  say("meanwhile", ask("/"));
  const struct timespec pause = {0, kPause * 1000000};
  int open = 1;
  // The header's deadline ends it: some 100 bytes are sent until then.
  for (size_t at = 1; open; at = at + 1 < sizeof kSlow - 1 ? at + 1 : at) {
    open = 0;
    for (int i = 0; i < count; ++i) {
      open += !waitFor(ends[i], POLLIN, 0) && sendBytes(ends[i], kSlow + at, 1);
    }
    nanosleep(&pause, NULL);
  }
  waitForEnds(ends, count, 1);
}

static void slowBodies(int count) {
  int ends[kMost];
  for (int i = 0; i < count; ++i) {
    ends[i] = dial();
    sendRequest(ends[i], "POST", "/", "Content-Length: 100000\r\n");
  }
  const struct timespec pause = {0, kPause * 1000000};
  int open = 1;
  printf("sending=%d\n", count);
  fflush(stdout);
  while (open) {
    open = 0;
    for (int i = 0; i < count; ++i) {
      open += !waitFor(ends[i], POLLIN, 0) && sendBytes(ends[i], "b", 1);
    }
    nanosleep(&pause, NULL);
  }
  waitForEnds(ends, count, 1);
  say("afterwards", ask("/"));
}

// Some of what is left of a body of `bytes` bytes and the end of its only chunk. What send() gives.
static ssize_t sendPart(int end, long sent, long bytes) {
  static const char kEnd[] = "\r\n0\r\n\r\n";
  static char part[65536];
  memset(part, 'b', sizeof part);
  if (sent >= bytes) {
    return send(end, kEnd + (sent - bytes), sizeof kEnd - 1 - (size_t)(sent - bytes), MSG_NOSIGNAL);
  }
  const size_t rest = (size_t)(bytes - sent);
  return send(end, part, rest < sizeof part ? rest : sizeof part, MSG_NOSIGNAL);
}

static void bodies(long bytes, int chunked, int count) {
  int ends[kMost];
  long left[kMost];
  const long all = bytes + (chunked ? 7 : 0);
  char start[64];
  snprintf(start, sizeof start, chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: %ld\r\n", bytes);
  for (int i = 0; i < count; ++i) {
    ends[i] = dial();
    left[i] = all;
    sendRequest(ends[i], "POST", "/", start);
    if (chunked) {  // one that holds all
      char size[32];
      snprintf(size, sizeof size, "%lx\r\n", (unsigned long)bytes);
      sendText(ends[i], size);
    }
    fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  for (int busy = count; busy > 0;) {
    struct pollfd waiters[kMost];
    busy = 0;
    for (int i = 0; i < count; ++i) {
      busy += left[i] > 0;
      waiters[i] = (struct pollfd){left[i] > 0 ? ends[i] : -1, POLLOUT | POLLIN, 0};
    }
    if (busy == 0 || poll(waiters, (nfds_t)count, kPatience) <= 0) {
      break;
    }
    for (int i = 0; i < count; ++i) {
      if ((waiters[i].revents & POLLIN) != 0) {
        left[i] = 0;  // answered already
      } else if (waiters[i].revents != 0) {
        const ssize_t took = sendPart(ends[i], all - left[i], bytes);
        left[i] = took < 0 && errno != EAGAIN ? 0 : left[i] - (took > 0 ? took : 0);
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    fcntl(ends[i], F_SETFL, 0);
    say("status", readAnswer(ends[i]));
  }
}

static void idle(int count) {
  int ends[kMost];
  for (int i = 0; i < count; ++i) {
    ends[i] = dial();
  }
  printf("open=%d\n", count);
  fflush(stdout);
  printf("over=%d\n", waitForEnds(ends, count, 0));
}

static void pending(int count, const char* path, int forEver) {
  int ends[kMost];
  for (int i = 0; i < count; ++i) {
    ends[i] = dial();
    sendRequest(ends[i], "GET", path, "");
  }
  printf("sent=%d\n", count);
  fflush(stdout);
  if (forEver) {
    pause();
  }
  printf("over=%d\n", waitForEnds(ends, count, 0));
  say("afterwards", ask("/"));
}

static void flood(int count) {
  for (int i = 1; i < count && fork() != 0; ++i) {
  }
  for (;;) {
    const int end = dial();
    while (sendRequest(end, "GET", "/", "") && readAnswer(end) != 0) {
    }
    close(end);
  }
}

static void forbidden(int count) {
  char text[16384] = "";
  char one[256];
  snprintf(one, sizeof one, "TRACE / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
  while (strlen(text) + strlen(one) < sizeof text) {
    strcat(text, one);
  }
  for (int i = 1; i < count && fork() != 0; ++i) {
  }
  const int end = dial();
  const size_t all = strlen(text);
  size_t sent = 0;
  fcntl(end, F_SETFL, O_NONBLOCK);
  say("begun", 1);
  for (;;) {
    struct pollfd waiter = {end, POLLIN | POLLOUT, 0};
    static char answers[65536];
    poll(&waiter, 1, -1);
    if ((waiter.revents & POLLIN) != 0 && recv(end, answers, sizeof answers, 0) == 0) {
      return;
    }
    const ssize_t took = (waiter.revents & POLLOUT) == 0 ? 0 : send(end, text + sent, all - sent, MSG_NOSIGNAL);
    sent = took > 0 ? (sent + (size_t)took) % all : sent;
  }
}

static void descriptors(int count) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(kMost * sizeof(int))];
  } control;
  char text[256];
  snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
  const int end = dial();
  const int passed = open("/dev/null", O_RDONLY);
  const size_t half = strlen(text) / 2;
  for (int piece = 0; piece < 2; ++piece) {
    struct iovec data = {text + (piece == 0 ? 0 : half), piece == 0 ? half : strlen(text) - half};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes};
    message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    for (int i = 0; i < count; ++i) {
      memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &passed, sizeof passed);
    }
    report("passed", sendmsg(end, &message, MSG_NOSIGNAL));
  }
  say("status", readAnswer(end));
  pause();
}

int main(int argc, char** argv) {
  const char* mode = argc > 2 ? argv[1] : "";
  host = argc > 2 ? argv[2] : "";
  const char* one = argc > 3 ? argv[3] : "";
  const char* two = argc > 4 ? argv[4] : "";
  const char* three = argc > 5 ? argv[5] : "";
#define IS(name) (strcmp(mode, name) == 0)
  if (IS("get")) {
    get(one, atoi(two));
  } else if (IS("line")) {
    endless("", atol(one));
  } else if (IS("header")) {
    endless("GET / HTTP/1.1\r\nX: ", atol(one));
  } else if (IS("headers")) {
    manyHeaders(atoi(one));
  } else if (IS("dribble")) {
    dribble(atoi(one));
  } else if (IS("slow-bodies")) {
    slowBodies(atoi(one));
  } else if (IS("bodies")) {
    bodies(atol(one), strcmp(two, "chunked") == 0, atoi(three));
  } else if (IS("idle")) {
    idle(atoi(one));
  } else if (IS("pending") || IS("unread")) {
    pending(atoi(one), two, IS("pending"));
  } else if (IS("flood")) {
    flood(atoi(one));
  } else if (IS("forbidden")) {
    forbidden(atoi(one));
  } else if (IS("descriptors")) {
    descriptors(atoi(one));
  } else {
    return 2;
  }
#undef IS
  return 0;
}
