/* Loaded before the C library (LD_PRELOAD): every fsync and fdatasync takes SLOW_SYNC_US more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slow(const char *name, int file) {
    const char *text = getenv("SLOW_SYNC_US");
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int answer = sync(file);
    if (text) usleep((useconds_t)atoi(text));
    return answer;
}

int fsync(int file) { return slow("fsync", file); }
int fdatasync(int file) { return slow("fdatasync", file); }
