/* Steps a frozen world at its time step (1 kHz for 0.001 s), and prints percentiles of the durations of steps.

   Usage: realtime robot.flz [seconds] */
#define _POSIX_C_SOURCE 200809L
#include "featherlane.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now(void) { /* [ns] */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    char error[256];
    fl_world *world = argc > 1 ? fl_open(argv[1], NULL, error, sizeof error) : NULL;
    if (!world) {
        fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "realtime", argc > 1 ? error : "usage: realtime FILE [SECONDS]");
        return 2;
    }
    fl_field timestep;
    fl_find_constant(world, "opt_timestep", &timestep);
    int64_t period = (int64_t)(1e9 * *(double *)timestep.values), late = 0;
    int64_t steps = (int64_t)(1e9 * (argc > 2 ? atof(argv[2]) : 1.0)) / period;
    int64_t *spent = malloc((size_t)(steps > 0 ? steps : 1) * sizeof *spent);
    if (steps < 1 || !spent) return 2;
    double *ctrl = fl_reals(world, "ctrl"), *qpos = fl_reals(world, "qpos");
    int64_t nu = fl_size(world, "nu"), nq = fl_size(world, "nq");

    int64_t due = now();
    for (int64_t k = 0; k < steps; k++) {
        for (int64_t i = 0; i < nu && i < nq; i++) ctrl[i] = -0.5 * qpos[i]; /* the controller */
        int64_t start = now();
        fl_step(world, 1);
        spent[k] = now() - start;
        due += period;
        late += now() > due;
        struct timespec until = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    qsort(spent, (size_t)steps, sizeof *spent, compare);
    printf("%s: %lld steps of %.3f ms, kernels %s, %lld late\n", argv[1], (long long)steps, (double)period / 1e6,
           fl_target(world), (long long)late);
    static const double percent[] = {50.0, 90.0, 99.0, 99.9, 100.0};
    for (int i = 0; i < 5; i++)
        printf("%5.1f %%  %8.1f us\n", percent[i], (double)spent[(int64_t)((double)(steps - 1) * percent[i] / 100.0)] / 1e3);
    free(spent);
    fl_close(world);
    return 0;
}
