/* Loaded before the C library (LD_PRELOAD): the time of day is CLOCK_AHEAD_S seconds ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, time);
  if (!failed && clock == CLOCK_REALTIME) time->tv_sec += atol(getenv("CLOCK_AHEAD_S"));
  return failed;
}
