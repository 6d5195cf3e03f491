/* Runs the self-tests of frozen worlds, and of batches of 11 worlds in files that have one.  Usage: replay FILE...
   Prints for each file: its name, the kernels in use, and whether all bits are the recorded ones. */
#include "featherlane.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int failed = argc < 2;
    for (int k = 1; k < argc; k++) {
        char error[256];
        for (int nworld = 0; nworld <= 11; nworld += 11) {
            fl_world *world = nworld ? fl_open_batch(argv[k], NULL, nworld, error, sizeof error)
                                     : fl_open(argv[k], NULL, error, sizeof error);
            if (!world && nworld && strstr(error, "has no batch")) continue;
            int equal = world && fl_self_test(world);
            printf("%s %d %s %s\n", argv[k], nworld, world ? fl_target(world) : error, equal ? "equal" : "different");
            failed |= !equal;
            fl_close(world);
        }
    }
    return failed;
}
