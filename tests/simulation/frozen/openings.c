/* Opens files whose names are on the standard input, as one world and as a batch, uses all that does not run kernels,
   and prints 1 for each file that opens as one world, else 0 and the error. */
#include "featherlane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char path[4096], error[256];
    for (int batch = 1;; batch = !batch) {
        if (batch && !fgets(path, sizeof path, stdin)) return 0;
        path[strcspn(path, "\n")] = 0;
        fl_world *world =
            batch ? fl_open_batch(path, NULL, 11, error, sizeof error) : fl_open(path, NULL, error, sizeof error);
        if (!batch) printf("%d %s\n", world != NULL, world ? "" : error);
        if (!world) continue;
        fl_field field;
        fl_contact contact;
        size_t size = (size_t)(fl_state_size(world) * fl_size(world, "nworld"));
        double *state = size < 1000000 ? malloc(size * sizeof *state) : NULL;
        if (state) {
            fl_get_state(world, state);
            fl_set_state(world, state);
        }
        fl_reset(world);
        fl_reset_world(world, 10);
        fl_step(world, 1); /* kernels of these files do nothing */
        fl_forward(world);
        if (fl_query(world, "full_m", NULL) && fl_find(world, "jac_M", &field)) memset(field.values, 0, 8);
        for (int k = 0; k < fl_contact_count(world) && k < 100; k++) fl_contact_at(world, k, &contact);
        fl_find(world, "qpos", &field);
        fl_find_constant(world, "body_mass", &field);
        fl_id(world, "body", "x");
        free(state);
        fl_close(world);
    }
}
