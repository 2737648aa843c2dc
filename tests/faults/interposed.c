/* Faults of time and of file systems, put between a process and the C library (LD_PRELOAD): a wall
 * clock that is moved, and calls that a file system refuses.
 *
 *   CLOCK_SHIFT   a file of 8 bytes: seconds that are added to the wall clock, read at every look
 *   REFUSED       the kinds of calls that fail, such as "flock" or "write"; REFUSED_AS: their error
 *                 number; REFUSED_BELOW: the folder whose files are concerned; REFUSED_LOG: a file
 *                 to which the path of every refused call is added
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
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

static int path_of(int file, char *path) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Return 1 and set errno if a call of this kind is refused for a path. */
static int is_refused(const char *kind, const char *path) {
    const char *kinds = getenv("REFUSED"), *below = getenv("REFUSED_BELOW");
    if (!kinds || !below || strncmp(path, below, strlen(below))) return 0;
    const char *found = strstr(kinds, kind);
    size_t length = strlen(kind);
    if (!found || (found > kinds && found[-1] != ' ') || (found[length] && found[length] != ' ')) return 0;
    char line[PATH_MAX + 64];
    int size = snprintf(line, sizeof line, "%s %s\n", kind, path);
    int log = syscall(SYS_openat, AT_FDCWD, getenv("REFUSED_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (log >= 0) {
        syscall(SYS_write, log, line, size);
        syscall(SYS_close, log);
    }
    errno = atoi(getenv("REFUSED_AS"));
    return 1;
}

static int is_refused_at(const char *kind, int folder, const char *name) {
    char path[2 * PATH_MAX] = "";
    if (!getenv("REFUSED")) return 0;
    if (name[0] != '/') {
        if (folder == AT_FDCWD ? !getcwd(path, PATH_MAX) : !path_of(folder, path)) return 0;
        strcat(path, "/");
    }
    strncat(path, name, PATH_MAX - 1);
    return is_refused(kind, path);
}

static int is_refused_file(const char *kind, int file, int type) {
    char path[PATH_MAX];
    struct stat found;
    if (!getenv("REFUSED") || !path_of(file, path)) return 0;
    if (type && (fstat(file, &found) || (found.st_mode & S_IFMT) != (mode_t)type)) return 0;
    return is_refused(kind, path);
}

static int is_folder_at(int folder, const char *name) {
    struct stat found;
    return !fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) && S_ISDIR(found.st_mode);
}

int fsync(int file) {
    if (is_refused_file("fsync-folder", file, S_IFDIR) || is_refused_file("fsync", file, S_IFREG)) return -1;
    return syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    if (is_refused_file("fsync", file, S_IFREG)) return -1;
    return syscall(SYS_fdatasync, file);
}

int flock(int file, int operation) {
    if (is_refused_file("flock", file, 0)) return -1;
    return syscall(SYS_flock, file, operation);
}

static int control(int file, int command, long argument) {
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_GETLK;
    if (locks && is_refused_file("fcntl-lock", file, S_IFREG)) return -1;
    return syscall(SYS_fcntl, file, command, argument);
}

#define CONTROL(name)                        \
    int name(int file, int command, ...) {   \
        va_list more;                        \
        va_start(more, command);             \
        long argument = va_arg(more, long);  \
        va_end(more);                        \
        return control(file, command, argument); \
    }
CONTROL(fcntl)
CONTROL(fcntl64)

static int opened(int folder, const char *name, int flags, mode_t mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
    if (writes && is_refused_at("change", folder, name)) return -1;
    if (flags & O_CREAT && faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) && is_refused_at("create", folder, name))
        return -1;
    if (!writes && !is_folder_at(folder, name) && is_refused_at("open", folder, name)) return -1;
    return syscall(SYS_openat, folder, name, flags, mode);
}

#define OPEN(name)                              \
    int name(const char *path, int flags, ...) { \
        va_list more;                           \
        va_start(more, flags);                  \
        mode_t mode = va_arg(more, mode_t);     \
        va_end(more);                           \
        return opened(AT_FDCWD, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                       \
    int name(int folder, const char *path, int flags, ...) { \
        va_list more;                                       \
        va_start(more, flags);                              \
        mode_t mode = va_arg(more, mode_t);                 \
        va_end(more);                                       \
        return opened(folder, path, flags, mode);           \
    }
OPEN_AT(openat)
OPEN_AT(openat64)

ssize_t write(int file, const void *bytes, size_t size) {
    if (is_refused_file("write", file, S_IFREG)) return -1;
    return syscall(SYS_write, file, bytes, size);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    if (is_refused_file("write", file, S_IFREG)) return -1;
    return syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t read(int file, void *bytes, size_t size) {
    if (is_refused_file("read", file, S_IFREG)) return -1;
    return syscall(SYS_read, file, bytes, size);
}

ssize_t pread64(int file, void *bytes, size_t size, off64_t offset) {
    if (is_refused_file("read", file, S_IFREG)) return -1;
    return syscall(SYS_pread64, file, bytes, size, offset);
}

DIR *opendir(const char *name) {
    if (is_refused_at("list", AT_FDCWD, name)) return NULL;
    int folder = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 ? NULL : fdopendir(folder);
}

int mkdirat(int folder, const char *name, mode_t mode) {
    if (is_refused_at("change", folder, name) || is_refused_at("create", folder, name)) return -1;
    return syscall(SYS_mkdirat, folder, name, mode);
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int linkat(int from, const char *source, int to, const char *target, int flags) {
    if (is_refused_at("change", to, target) || is_refused_at("link", to, target)) return -1;
    return syscall(SYS_linkat, from, source, to, target, flags);
}

int link(const char *source, const char *target) { return linkat(AT_FDCWD, source, AT_FDCWD, target, 0); }

int renameat(int from, const char *source, int to, const char *target) {
    if (is_refused_at("change", to, target) || is_refused_at("rename", to, target)) return -1;
    if (is_folder_at(from, source) && is_refused_at("rename-folder", to, target)) return -1;
    return syscall(SYS_renameat2, from, source, to, target, 0);
}

int rename(const char *source, const char *target) { return renameat(AT_FDCWD, source, AT_FDCWD, target); }

int unlinkat(int folder, const char *name, int flags) {
    if (is_refused_at("change", folder, name) || is_refused_at("unlink", folder, name)) return -1;
    return syscall(SYS_unlinkat, folder, name, flags);
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int fchmodat(int folder, const char *name, mode_t mode, int flags) {
    (void)flags;
    if (is_refused_at("change", folder, name) || is_refused_at("chmod", folder, name)) return -1;
    return syscall(SYS_fchmodat, folder, name, mode);
}

int chmod(const char *name, mode_t mode) { return fchmodat(AT_FDCWD, name, mode, 0); }

int fchmod(int file, mode_t mode) {
    if (is_refused_file("change", file, 0) || is_refused_file("chmod", file, 0)) return -1;
    return syscall(SYS_fchmod, file, mode);
}
