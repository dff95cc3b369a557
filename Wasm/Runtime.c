/* What Swift code without an operating system takes from C: memory, rounding, and products of 128 bits.
 *
 * There is no randomness, clock or output here on purpose: logic that reached for one would not link.
 *
 * Memory: a block belongs to a size class, four to a doubling, so at most a quarter of it is unused. A free block waits
 * in the list of its class; memory is never given back, as WebAssembly knows no way. One thread.
 */

#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((used))

/* -mbulk-memory makes instructions of these. */
EXPORTED void *memcpy(void *to, const void *from, size_t count) { return __builtin_memcpy(to, from, count); }
EXPORTED void *memmove(void *to, const void *from, size_t count) { return __builtin_memmove(to, from, count); }
EXPORTED void *memset(void *to, int byte, size_t count) { return __builtin_memset(to, byte, count); }

EXPORTED int memcmp(const void *left, const void *right, size_t count) {
    const uint8_t *a = left, *b = right;
    for (; count >= 8; a += 8, b += 8, count -= 8) {
        uint64_t x, y;
        __builtin_memcpy(&x, a, 8);
        __builtin_memcpy(&y, b, 8);
        if (x != y) break;
    }
    for (; count > 0; a++, b++, count--)
        if (*a != *b) return *a - *b;
    return 0;
}

EXPORTED size_t strlen(const char *text) {
    size_t count = 0;
    while (text[count]) count++;
    return count;
}

/* MARK: Memory */

enum { PAGE = 65536, GROWTH_IN_PAGES = 256, ALIGNMENT = 16, FIRST_DOUBLING = 5, CLASSES = 4 * (32 - FIRST_DOUBLING) };

/* Stands before each block, which is as aligned as it is. */
typedef struct Head {
    struct Head *next; /* while it is free */
    uint32_t class;
    uint32_t unused[2];
} Head;
_Static_assert(sizeof(Head) == ALIGNMENT, "blocks are aligned");

extern uint8_t __heap_base; /* from the linker */
static uintptr_t end;
static Head *vacant[CLASSES];

/* The least class that holds so many bytes, head included. */
static uint32_t class_of(size_t bytes) {
    if (bytes <= (1u << FIRST_DOUBLING)) return 0;
    uint32_t doubling = 31 - __builtin_clz((uint32_t)bytes - 1);
    uint32_t quarter = (((uint32_t)bytes - 1) >> (doubling - 2)) & 3;
    return 4 * (doubling - FIRST_DOUBLING) + quarter + 1;
}

/* Bytes of a block of a class, head included: 32, 40 → 48, 48, 56 → 64, 64, 80, 96, 112, 128 and so on. */
static size_t bytes_of(uint32_t class) {
    size_t doubling = (size_t)1 << (class / 4 + FIRST_DOUBLING);
    size_t bytes = doubling + (class % 4) * (doubling / 4);
    return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static Head *carve(size_t bytes) {
    if (end == 0) end = ((uintptr_t)&__heap_base + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    size_t have = __builtin_wasm_memory_size(0);
    uint64_t need = ((uint64_t)end + bytes + PAGE - 1) / PAGE;
    if (need > have) {
        size_t more = need - have < GROWTH_IN_PAGES ? GROWTH_IN_PAGES : need - have;
        if (__builtin_wasm_memory_grow(0, more) == (size_t)-1 &&
            __builtin_wasm_memory_grow(0, need - have) == (size_t)-1)
            __builtin_trap();
    }
    Head *head = (Head *)end;
    end += bytes;
    return head;
}

/* Traps where there is no memory left. */
EXPORTED void *malloc(size_t count) {
    if (count > UINT32_MAX / 2) __builtin_trap();
    uint32_t class = class_of(count + sizeof(Head));
    Head *head = vacant[class];
    if (head)
        vacant[class] = head->next;
    else
        head = carve(bytes_of(class));
    head->class = class;
    return head + 1;
}

EXPORTED void free(void *block) {
    if (!block) return;
    Head *head = (Head *)block - 1;
    head->next = vacant[head->class];
    vacant[head->class] = head;
}

EXPORTED int posix_memalign(void **block, size_t alignment, size_t count) {
    if (alignment > ALIGNMENT) __builtin_trap();
    *block = malloc(count);
    return 0;
}

/* MARK: Arithmetic */

/* To the nearest whole number, halves away from zero. */
EXPORTED double round(double value) {
    double whole = __builtin_trunc(value);
    return __builtin_fabs(value - whole) >= 0.5 ? whole + __builtin_copysign(1, value) : whole;
}

/* The product of two 64-bit numbers, in 128 bits; by halves, since the whole would be a call of what is below. */
static unsigned __int128 product(uint64_t a, uint64_t b) {
    uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
    uint64_t middle = (a >> 32) * (b & 0xFFFFFFFF) + (low >> 32);
    uint64_t other = (a & 0xFFFFFFFF) * (b >> 32) + (middle & 0xFFFFFFFF);
    uint64_t high = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
    return (unsigned __int128)high << 64 | (other << 32 | (low & 0xFFFFFFFF));
}

/* What the compiler calls for a product of 128 bits. */
EXPORTED __int128 __multi3(__int128 left, __int128 right) {
    unsigned __int128 a = left, b = right;
    uint64_t crossed = (uint64_t)(a >> 64) * (uint64_t)b + (uint64_t)a * (uint64_t)(b >> 64);
    return (__int128)(product((uint64_t)a, (uint64_t)b) + ((unsigned __int128)crossed << 64));
}
