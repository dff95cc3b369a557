#include "MutationTable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

uint8_t mutation_states[mutation_point_limit];
uint8_t mutation_notes[mutation_point_limit];

void mutation_trace_all(void) {
    memset(mutation_states, mutation_traced, sizeof mutation_states);
    memset(mutation_notes, 0, sizeof mutation_notes);
}

void mutation_bring_alive(uint32_t point, uint8_t mutant) {
    memset(mutation_states, mutation_quiet, sizeof mutation_states);
    if (point < mutation_point_limit) mutation_states[point] = mutation_first + mutant;
}

uint8_t mutation_noted(uint32_t point) { return point < mutation_point_limit ? mutation_notes[point] : 0; }

void mutation_limit(int seconds, uint64_t bytes) {
    struct rlimit room = {.rlim_cur = bytes, .rlim_max = bytes};
    setrlimit(RLIMIT_AS, &room);
    struct itimerval timer = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &timer, NULL);
}

__attribute__((constructor)) static void mutation_begin(void) {
    const char *mutant = getenv("MUTANT");
    unsigned point, number;
    if (mutant && sscanf(mutant, "%u,%u", &point, &number) == 2) mutation_bring_alive(point, (uint8_t)number);
    if (getenv("MUTATION_TRACE")) mutation_trace_all();
}

__attribute__((destructor)) static void mutation_end(void) {
    const char *path = getenv("MUTATION_TRACE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (unsigned point = 0; point < mutation_point_limit; point += 1)
        if (mutation_notes[point]) fprintf(file, "%u %u\n", point, mutation_notes[point]);
    fclose(file);
}
