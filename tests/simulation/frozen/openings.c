/* Opens files whose names are on the standard input, uses all that does not run kernels, and prints 1 for each file that
   opens, else 0 and the error. */
#include "featherlane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char path[4096], error[256];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        fl_world *world = fl_open(path, NULL, error, sizeof error);
        printf("%d %s\n", world != NULL, world ? "" : error);
        if (!world) continue;
        fl_field field;
        fl_contact contact;
        double *state = fl_state_size(world) < 100000 ? malloc((size_t)fl_state_size(world) * sizeof *state) : NULL;
        if (state) {
            fl_get_state(world, state);
            fl_set_state(world, state);
        }
        fl_reset(world);
        for (int k = 0; k < fl_contact_count(world) && k < 100; k++) fl_contact_at(world, k, &contact);
        fl_find(world, "qpos", &field);
        fl_find_constant(world, "body_mass", &field);
        fl_id(world, "body", "x");
        free(state);
        fl_close(world);
    }
    return 0;
}
