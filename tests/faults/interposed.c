/* Faults of time, put between a process and the C library (LD_PRELOAD): a wall clock that is moved,
 * and a disk on which making something durable takes long.
 *
 *   CLOCK_SHIFT   a file of 8 bytes: seconds that are added to the wall clock, read at every look
 *   SLOW_BELOW    part of a path; SLOW_MS: milliseconds that fsync takes of files whose path has it
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *shift;

__attribute__((constructor)) static void map_shift(void) {
    const char *path = getenv("CLOCK_SHIFT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) shift = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!failed && is_wall && shift) now->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

int fsync(int file) {
    const char *below = getenv("SLOW_BELOW"), *milliseconds = getenv("SLOW_MS");
    if (below && milliseconds) {
        char name[64], path[PATH_MAX];
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        ssize_t length = readlink(name, path, sizeof path - 1);
        if (length > 0) {
            path[length] = 0;
            if (strstr(path, below)) usleep(1000u * (unsigned)atol(milliseconds));
        }
    }
    return syscall(SYS_fsync, file);
}
