/* Lets system calls on chosen files fail, in any program:
 *
 *     cc -shared -fPIC -o failing_disk.so failing_disk.c
 *     FAILING_DISK=faults LD_PRELOAD=./failing_disk.so program
 *
 * Each line of the file `faults` is a call (read, write or sync), the name of a file and an error number. It is read at
 * each call, so faults come and go while the program runs; where it is missing, nothing fails.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fault(const char *call, int descriptor)
{
    int saved = errno, found = 0;
    const char *faults = getenv("FAILING_DISK");
    int file = faults ? (int) syscall(SYS_openat, AT_FDCWD, faults, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        char text[4096], link[64], path[4096];
        long count = syscall(SYS_read, file, text, sizeof text - 1);
        syscall(SYS_close, file);
        text[count > 0 ? count : 0] = 0;
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        const char *slash = strrchr(path, '/');
        char *rest = NULL;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            char which[16], name[256];
            int number;
            if (slash && sscanf(line, "%15s %255s %d", which, name, &number) == 3 && !strcmp(which, call)
                && !strcmp(name, slash + 1))
                found = number;
        }
    }
    errno = found ? found : saved;
    return found;
}

#define CALL(kind, result, name, declared, passed)              \
    result name declared                                        \
    {                                                           \
        static result (*real) declared;                         \
        if (!real) *(void **) &real = dlsym(RTLD_NEXT, #name);  \
        return fault(kind, file) ? -1 : real passed;            \
    }

CALL("read", ssize_t, read, (int file, void *bytes, size_t count), (file, bytes, count))
CALL("read", ssize_t, pread, (int file, void *bytes, size_t count, off_t at), (file, bytes, count, at))
CALL("read", ssize_t, pread64, (int file, void *bytes, size_t count, off64_t at), (file, bytes, count, at))
CALL("write", ssize_t, write, (int file, const void *bytes, size_t count), (file, bytes, count))
CALL("write", ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t at), (file, bytes, count, at))
CALL("write", ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t at), (file, bytes, count, at))
CALL("sync", int, fsync, (int file), (file))
CALL("sync", int, fdatasync, (int file), (file))
