/* Runs the recorded calls of stages (recorder.py) in a shared object of kernels, and compares all memory bit by bit.
   Usage: replay LIBRARY RECORDING */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

enum { NAME = 64, LINE = 64, MOST = 8 };
typedef void (*stage)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

static const char *at; /* the next byte of the recording */

static int64_t word(void) {
    int64_t value;
    memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
}

static char *whole_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(3);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *content = malloc(size);
    if (!content || fread(content, 1, size, file) != (size_t)size) exit(3);
    fclose(file);
    return content;
}

/* Memory whose address modulo 64 is that of the recording; a kernel may read a line beyond its end. */
static char *memory(int64_t size, int64_t offset) {
    char *raw = calloc(size + 4 * LINE, 1);
    if (!raw) exit(3);
    return raw + (LINE - (uintptr_t)raw % LINE) + offset;
}

/* Reads the cache lines of a block that the recording contains. */
static void read_lines(char *block) {
    for (int64_t k = word(); k > 0; k--) {
        int64_t line = word();
        memcpy(block + line * LINE, at, LINE);
        at += LINE;
    }
}

/* Reads the pointers within the blocks, and writes them to `to`: the blocks themselves, or their expected content. */
static void read_pointers(char **to, char **block) {
    for (int64_t k = word(); k > 0; k--) {
        int64_t b = word(), offset = word(), target = word();
        target = (int64_t)(intptr_t)(block[target] + word());
        memcpy(to[b] + offset, &target, sizeof target);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
#ifdef _WIN32
    HMODULE library = LoadLibraryA(argv[1]);
#else
    void *library = dlopen(argv[1], RTLD_NOW);
#endif
    if (!library) {
        printf("%s cannot be loaded\n", argv[1]);
        return 4;
    }
    at = whole_file(argv[2]);
    int64_t calls = word(), equal = 0;
    for (int64_t call = 0; call < calls; call++) {
        const char *name = at;
        at += NAME;
        int64_t arguments[MOST] = {0}, records = word(), numbers = word();
        if (records + numbers > MOST) return 5;
        for (int64_t k = 0; k < numbers; k++) arguments[records + k] = word();
        int64_t blocks = word(), *size = malloc(blocks * sizeof *size);
        char **block = malloc(blocks * sizeof *block), **expected = malloc(blocks * sizeof *block);
        for (int64_t b = 0; b < blocks; b++) {
            size[b] = word();
            block[b] = memory(size[b], word());
        }
        for (int64_t r = 0; r < records; r++) {
            int64_t words = word(), *table = (int64_t *)memory(words * 8, 0);
            for (int64_t k = 0; k < words; k++) table[k] = word();
            for (int64_t k = word(); k > 0; k--) {
                int64_t place = word(), b = word();
                table[place] = (int64_t)(intptr_t)(block[b] + word());
            }
            arguments[r] = (int64_t)(intptr_t)table;
        }
        for (int64_t b = 0; b < blocks; b++) read_lines(block[b]);
        read_pointers(block, block);
        for (int64_t b = 0; b < blocks; b++) {
            expected[b] = memory(size[b], 0);
            memcpy(expected[b], block[b], size[b]);
        }
        for (int64_t b = 0; b < blocks; b++) read_lines(expected[b]);
        read_pointers(expected, block);
#ifdef _WIN32
        stage run = (stage)(void *)GetProcAddress(library, name);
#else
        stage run = (stage)dlsym(library, name);
#endif
        if (!run) {
            printf("%s is not in the library\n", name);
            return 4;
        }
        const int64_t *a = arguments;
        run(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
        int64_t differing = 0;
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t k = 0; k < size[b]; k++) differing += block[b][k] != expected[b][k];
        printf("%s: %lld bytes differ\n", name, (long long)differing);
        equal += !differing;
        /* a recording has few calls: their memory is not freed */
    }
    printf("%lld of %lld calls equal\n", (long long)equal, (long long)calls);
    return equal != calls;
}
