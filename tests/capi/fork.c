/* Processes that fork while a thread of theirs uses the library for the first time:
 *   fork model.rknn [processes]
 * The child must be able to use the library too, whatever the thread was inside of. Ends with 1 otherwise. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rknn_api.h"

enum { LONGEST_DELAY_US = 1500, CHILD_SECONDS = 10 };

#ifdef __SANITIZE_ADDRESS__
/* A child forked while another thread works loses sight of that thread's memory, which would count as leaked. */
int __lsan_is_turned_off(void);
__attribute__((used, visibility("default"))) int __lsan_is_turned_off(void) { return 1; }
#endif

static unsigned char* model;
static uint32_t model_bytes;

/* The first code that says a failure. */
static int use_library(void) {
  rknn_context context = 0;
  int code = rknn_init(&context, model, model_bytes, 0, NULL);
  if (code == RKNN_SUCC) code = rknn_run(context, NULL);
  return code == RKNN_SUCC ? rknn_destroy(context) : code;
}

static void* use_in_thread(void* code) {
  *(int*)code = use_library();
  return NULL;
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* 0 when `child` ended well; its signal where it was ended by one, above all that of its alarm. */
static int await(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int fork_during_first_use(int delay_us) {
  pthread_t thread;
  int code = RKNN_SUCC, failed;
  const double end = microseconds() + delay_us;
  pid_t child;
  if (pthread_create(&thread, NULL, use_in_thread, &code) != 0) return 2;
  while (microseconds() < end) {
  }
  child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    exit(use_library() == RKNN_SUCC ? 0 : 3);
  }
  failed = await(child);
  pthread_join(thread, NULL);
  return failed ? failed : code != RKNN_SUCC;
}

int main(int argc, char** argv) {
  const int processes = argc > 2 ? atoi(argv[2]) : 100;
  FILE* file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  int i, wrong = 0;
  if (!file || fseek(file, 0, SEEK_END) != 0) return 2;
  model_bytes = (uint32_t)ftell(file);
  model = malloc(model_bytes);
  rewind(file);
  if (!model || fread(model, 1, model_bytes, file) != model_bytes) return 2;
  fclose(file);
  for (i = 0; i < processes; ++i) {
    const pid_t user = fork(); /* this process itself never uses the library */
    int failed;
    if (user == 0) _exit(fork_during_first_use(i * 7 % LONGEST_DELAY_US));
    failed = await(user);
    if (failed && ++wrong <= 3) fprintf(stderr, "process %d: %d\n", i, failed);
  }
  printf("%d processes: %d wrong\n", processes, wrong);
  return wrong != 0;
}
