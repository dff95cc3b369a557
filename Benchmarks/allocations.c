/* Counts a process's allocations, for `run --allocations`: preloaded, it stands between the program and the C
 * library's malloc, and counts in a file that both it and the one who measures have mapped.
 *
 *     cc -O2 -shared -fPIC -o allocations.so allocations.c
 *     ALLOCATIONS=counter LD_PRELOAD=./allocations.so program
 *
 * The counter is 8 bytes in the host's order. free is left alone; realloc counts, as it may allocate. */

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own names: no dlsym, which allocates itself. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uint64_t nowhere;
static uint64_t *counter = &nowhere;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("ALLOCATIONS");
    if (!path) return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *counter) != 0) return;
    void *place = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (place != MAP_FAILED) counter = place;
}

static void count(void) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *place, size_t size) {
    count();
    return __libc_realloc(place, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **place, size_t alignment, size_t size) {
    count();
    void *result = __libc_memalign(alignment, size);
    if (!result) return 12; /* ENOMEM */
    *place = result;
    return 0;
}
