// Which mutant is alive, and which points of mutation were reached: a byte a point, looked at wherever one is passed.
#pragma once

#include <stdint.h>

enum {
    // More than there are points; `mutate` says so where they do not fit.
    mutation_point_limit = 1 << 15,
    // Of a point: nothing to do.
    mutation_quiet = 0,
    // Of a point: what it reaches, and where its mutants would differ, is noted.
    mutation_traced = 1,
    // Of a point: 2 and more: the mutant of this number, less 2, is alive.
    mutation_first = 2,
};

extern uint8_t mutation_states[mutation_point_limit];
// Bit 0: the point was reached; bit 1 and more: this mutant of it would have differed.
extern uint8_t mutation_notes[mutation_point_limit];

static inline uint8_t mutation_state(uint32_t point) { return mutation_states[point]; }

// Notes what a point came to; once there is nothing more to note, it is quiet.
static inline void mutation_note(uint32_t point, uint8_t bits, uint8_t all) {
    mutation_notes[point] |= bits;
    if (mutation_notes[point] == all) mutation_states[point] = mutation_quiet;
}

// From here on all points are traced, none is alive, and nothing is noted.
//
// A process begins so where MUTATION_TRACE names a file, to which it writes what was noted when it ends: for each point
// reached, its number and its notes. Where MUTANT is set, to a point's number and a mutant's, that one is alive.
void mutation_trace_all(void);
// From here on one mutant is alive, and nothing is traced.
void mutation_bring_alive(uint32_t point, uint8_t mutant);
// What was noted of a point.
uint8_t mutation_noted(uint32_t point);
// From here on the process may take so many seconds of a processor, 0 for as many as it likes, and so many bytes.
void mutation_limit(int seconds, uint64_t bytes);
