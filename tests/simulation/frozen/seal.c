/* Steps a frozen world after the system forbids all system calls but read, write and exit, and counts allocations of the
   loader.  Usage: seal FILE; writes the state, then the number of contacts, to the standard output. */
#define _GNU_SOURCE
#include "featherlane.h"

#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sealed, allocations;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__wrap_malloc(size_t n) { return allocations += sealed, __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return allocations += sealed, __real_calloc(n, size); }

int main(int argc, char **argv) {
    char error[256];
    fl_world *world = argc == 2 ? fl_open(argv[1], NULL, error, sizeof error) : NULL;
    if (!world) return 2;
    size_t size = (size_t)fl_state_size(world);
    double *state = malloc(size * sizeof *state), *ctrl = fl_reals(world, "ctrl");
    int64_t nu = fl_size(world, "nu"), contacts = 0;
    fl_contact contact;
    if (!state || !ctrl || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 77;
    sealed = 1;
    for (int k = 0; k < 500; k++) {
        for (int64_t i = 0; i < nu; i++) ctrl[i] = 0.001 * (double)(k % 100) - 0.05 * (double)(i % 3);
        fl_step(world, 1);
    }
    fl_get_state(world, state);
    fl_forward(world);
    while (fl_contact_at(world, (int)contacts, &contact)) contacts++;
    if (contacts != fl_contact_count(world) || allocations) syscall(SYS_exit, 3);
    fl_reset(world);
    fl_set_state(world, state);
    fl_get_state(world, state);
    int whole = write(1, state, size * sizeof *state) == (ssize_t)(size * sizeof *state) && write(1, &contacts, 8) == 8;
    syscall(SYS_exit, allocations ? 3 : whole ? 0 : 4); /* exit_group is forbidden */
}
