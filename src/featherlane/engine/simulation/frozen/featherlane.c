/* Loader of frozen worlds (featherlane.h): reads the zip, verifies hashes, sizes and offsets, then maps the kernels. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "featherlane.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
static const char ARCHITECTURE[] = "x86_64";
#else
static const char ARCHITECTURE[] = "aarch64";
#endif
static const char COMMENT[] = "featherlane frozen world, SHA-256 of manifest.json: ";
enum { FORMAT = 1, MOST_WORLDS = 1 << 24, LINE = 64, FAULT_WORDS = 4, DEEPEST = 16, HEX = 64, ZIP_END = 22 };
#define MOST_BYTES ((int64_t)1 << 40)
#define MOST_TESTS ((int64_t)1 << 20)

enum { COUNT, PRESENT, DIM, GEOM, DIST, POS, FRAME, INCLUDEMARGIN, FRICTION, FORCE, CONTACTS };
static const struct {
    const char *name;
    int width; /* numbers per contact */
} COLUMNS[CONTACTS] = {
    {"ncon_slot", 1}, {"con_present", 1}, {"con_dim", 1},           {"con_geom", 2},     {"con_dist", 1},
    {"con_pos", 3},   {"con_frame", 9},   {"con_includemargin", 1}, {"con_friction", 5}, {"con_force", 6}};

typedef struct {
    const unsigned char *at;
    int64_t size;
} span;

/* JSON as an array of nodes: an object's children are keys and values in turn; `next` is the node behind a subtree. */
typedef struct {
    char kind; /* '{', '[', '"', or '0' for a number or literal */
    int next, length;
    char *text; /* of a string: ends in 0; of a number: its first character */
} node;

/* A field of a record: an array, or a size, with a value and no rows.  A row of a tile has a number for each lane. */
typedef struct {
    fl_field info;
    int64_t offset, end, rows, lanes, value;
    int reset, real; /* real: tiles have it in lanes */
} field;

/* A record: its fields, its lines that are not zero, its memory, and its table of addresses, which kernels read.  A
   field has the numbers of each world in turn. */
typedef struct {
    int64_t bytes, lines, worlds, *table;
    span image;
    field *fields;
    int count;
    char *raw, *memory;
} record;

typedef struct {
    const field *field;
    int64_t start, count;
} part;

enum { NUMBERS = 4 }; /* that the kernel of a query takes, or none */

typedef struct {
    const char *name;
    void *kernel;
    int count, given[NUMBERS]; /* given: the caller has this number */
    int64_t numbers[NUMBERS];
} query;

/* A batch copies its rows into `data`, a tile of some lanes, steps the tile, and copies it back. */
struct fl_world {
    char *file, *text;
    node *nodes;
    record model, data, asked; /* asked: what queries read and write besides */
    query *queries;
    int nquery;
    record wide, rows; /* of a batch: the model in lanes, and what worlds keep */
    int64_t nworld, ntile, *transfers, *columns, skips, stores, forwards; /* nworld is 0 without a batch */
    int nstep_at, nunread_at, nstore_at; /* in `transfers` */
    int32_t (*run)(int64_t *, int64_t *, int64_t *, int64_t, int64_t, int64_t);
    part *parts;
    int npart, names;
    const field *contacts[CONTACTS], *ctrl, *found_bad;
    int64_t state_size, test_steps, test_blocks;
    const char *target, *version, *test_hash;
    span controls;
    double *state; /* of the self-test */
    void *library;
    int descriptor; /* of its file; -1: none */
    int32_t (*step)(int64_t *, int64_t *, int64_t);
    int32_t (*forward)(int64_t *, int64_t *);
    char hash[HEX + 1];
};

/* State of fl_open, which the first error leaves by longjmp. */
typedef struct {
    jmp_buf leave;
    char *error;
    size_t size;
    fl_world *world;
    int64_t length; /* of the file */
    char *at, *end; /* of the JSON text */
    int count;
} opening;

static void fail(opening *o, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (o->error && o->size) vsnprintf(o->error, o->size, format, values);
    va_end(values);
    longjmp(o->leave, 1);
}

static void require(opening *o, int condition, const char *what) {
    if (!condition) fail(o, "is not a frozen world of format %d: %s", FORMAT, what);
}

static void *allocated(opening *o, int64_t count, size_t size) {
    void *found = calloc((size_t)(count > 0 ? count : 1), size);
    if (!found) fail(o, "not enough memory");
    return found;
}

/* ---- SHA-256 (FIPS 180-4) ---------------------------------------------------------------------------------------- */
typedef struct {
    uint32_t state[8];
    unsigned char block[64];
    uint64_t length;
} sha256;

static const sha256 START = {
    {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, {0}, 0};
static const uint32_t ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t turned(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha_block(sha256 *h) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 4; k++) w[i] = (k ? w[i] << 8 : 0) | h->block[4 * i + k];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3);
        w[i] += w[i - 7] + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    memcpy(v, h->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t x = v[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & v[5]) ^ (~e & v[6]));
        uint32_t y = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        x += ROUNDS[i] + w[i];
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += x;
        v[0] = x + y;
    }
    for (int i = 0; i < 8; i++) h->state[i] += v[i];
}

static void sha_add(sha256 *h, const void *content, int64_t size) {
    const unsigned char *bytes = content;
    for (int64_t i = 0; i < size; i++) {
        h->block[h->length++ % 64] = bytes[i];
        if (h->length % 64 == 0) sha_block(h);
    }
}

static void sha_end(sha256 *h, char *hex) {
    static const char digits[] = "0123456789abcdef";
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(8 * h->length >> (56 - 8 * i));
    sha_add(h, "\x80", 1);
    while (h->length % 64 != 56) sha_add(h, "", 1);
    sha_add(h, length, 8);
    for (int i = 0; i < HEX; i++) hex[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[HEX] = 0;
}

static void hash_of(span content, char *hex) {
    sha256 h = START;
    sha_add(&h, content.at, content.size);
    sha_end(&h, hex);
}

/* ---- zip without compression ------------------------------------------------------------------------------------- */
static void read_file(opening *o, const char *path) {
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) fail(o, "cannot be read");
    long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    o->world->file = size > 0 ? malloc((size_t)size) : NULL;
    rewind(file);
    int whole = o->world->file && fread(o->world->file, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (!whole) fail(o, "cannot be read");
    o->length = size;
}

static int64_t little(opening *o, int64_t at, int bytes) {
    int64_t value = 0;
    require(o, at >= 0 && at <= o->length - bytes, "its zip is cut off");
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | (unsigned char)o->world->file[at + i];
    return value;
}

static span member(opening *o, const char *name) {
    int64_t end = o->length - ZIP_END - (int64_t)strlen(COMMENT) - HEX, size = (int64_t)strlen(name);
    int64_t number = little(o, end + 10, 2), at = little(o, end + 16, 4);
    span found = {NULL, 0};
    for (int64_t k = 0; k < number; k++) {
        require(o, little(o, at, 4) == 0x02014b50, "its list of members is damaged");
        int64_t length = little(o, at + 28, 2), bytes = little(o, at + 20, 4), local = little(o, at + 42, 4);
        little(o, at + 46 + length - 1, 1);
        if (length == size && !memcmp(o->world->file + at + 46, name, (size_t)size)) {
            require(o, !little(o, at + 10, 2) && bytes == little(o, at + 24, 4), "a member is compressed");
            require(o, little(o, local, 4) == 0x04034b50, "a member is damaged");
            local += 30 + little(o, local + 26, 2) + little(o, local + 28, 2);
            require(o, bytes <= o->length - local && !found.at, "a member is cut off, or there are two of it");
            found.at = (unsigned char *)o->world->file + local;
            found.size = bytes;
        }
        at += 46 + length + little(o, at + 30, 2) + little(o, at + 32, 2);
    }
    require(o, found.at != NULL, "a member is missing");
    return found;
}

/* ---- JSON without white space ------------------------------------------------------------------------------------ */
static void expect(opening *o, char c) { require(o, o->at < o->end && *o->at++ == c, "manifest.json is no JSON"); }

/* Reads a string in place. */
static void string(opening *o, node *n) {
    expect(o, '"');
    char *out = n->text = o->at;
    n->kind = '"';
    while (o->at < o->end && *o->at != '"') {
        char c = *o->at++;
        if (c == '\\') {
            c = o->at < o->end ? *o->at++ : 0;
            require(o, c == '"' || c == '\\', "manifest.json has an unknown escape"); /* all else is UTF-8 */
        }
        require(o, (unsigned char)c >= 0x20, "manifest.json has a control character");
        *out++ = c;
    }
    n->length = (int)(out - n->text);
    expect(o, '"');
    *out = 0; /* at the latest on the closing quote */
}

static void value(opening *o, int depth) {
    node *n = o->world->nodes + o->count++;
    require(o, depth < DEEPEST && o->at < o->end, "manifest.json is too deep, or cut off");
    n->kind = *o->at;
    n->text = o->at;
    if (n->kind == '"') {
        string(o, n);
    } else if (n->kind == '{' || n->kind == '[') {
        char close = n->kind == '{' ? '}' : ']';
        for (o->at++; o->at < o->end && *o->at != close; n->length++) {
            if (n->length) expect(o, ',');
            if (n->kind == '{') {
                node *key = o->world->nodes + o->count++;
                string(o, key);
                key->next = o->count;
                expect(o, ':');
            }
            value(o, depth + 1);
        }
        expect(o, close);
    } else {
        n->kind = '0';
        while (o->at < o->end && *o->at && !strchr(",]}", *o->at)) o->at++;
        n->length = (int)(o->at - n->text);
        require(o, n->length > 0, "manifest.json lacks a value");
    }
    n->next = o->count;
}

/* Returns the value of a key, which has the given kind. */
static int get(opening *o, int object, const char *key, char kind) {
    const node *nodes = o->world->nodes;
    int found = -1;
    if (nodes[object].kind == '{')
        for (int k = object + 1; k < nodes[object].next; k = nodes[k + 1].next)
            if (!strcmp(nodes[k].text, key)) found = k + 1;
    if (found < 0 || nodes[found].kind != kind)
        fail(o, "is not a frozen world of format %d: manifest.json has no valid entry %s", FORMAT, key);
    return found;
}

static const char *text(opening *o, int object, const char *key) {
    return o->world->nodes[get(o, object, key, '"')].text;
}

static int64_t number(opening *o, int n, int64_t least, int64_t most) {
    const node *given = o->world->nodes + n;
    char digits[24] = "", *end = digits;
    require(o, given->kind == '0' && given->length < (int)sizeof digits, "a number is none");
    memcpy(digits, given->text, (size_t)given->length);
    long long found = strtoll(digits, &end, 10);
    require(o, end != digits && !*end && found >= least && found <= most, "a number is out of range");
    return found;
}

static int64_t number_of(opening *o, int object, const char *key, int64_t least, int64_t most) {
    return number(o, get(o, object, key, '0'), least, most);
}

/* ---- the manifest ------------------------------------------------------------------------------------------------ */
static int64_t nbytes(const field *f) { return f->rows * f->lanes * (f->info.type == FL_INT32 ? 4 : 8); }

static void *values(const record *r, const field *f) { return r->memory + f->offset * r->worlds; }

static int64_t address(const void *at) { return (int64_t)(intptr_t)at; }

static int64_t image_line(const record *r, int64_t k) {
    int64_t line;
    memcpy(&line, r->image.at + 8 + 8 * k, 8);
    return line;
}

static void read_array(opening *o, int n, int64_t lanes, field *f) {
    const char *type = text(o, n, "type");
    int shape = get(o, n, "shape", '[');
    f->real = !strcmp(text(o, n, "kind"), "real");
    f->lanes = f->real ? lanes : 1;
    f->info.type = !strcmp(type, "f8") ? FL_FLOAT64 : !strcmp(type, "i4") ? FL_INT32 : FL_INT64;
    require(o, f->info.type != FL_INT64 || !strcmp(type, "i8"), "a field has an unknown type");
    f->info.unit = text(o, n, "unit");
    f->info.writable = (int)number_of(o, n, "writable", 0, 1);
    f->info.whole = (int)number_of(o, n, "whole", 0, 1);
    f->reset = (int)number_of(o, n, "reset", 0, 1);
    f->offset = number_of(o, n, "offset", 0, MOST_BYTES);
    f->rows = number_of(o, n, "rows", 1, MOST_BYTES);
    f->info.count = 1;
    for (int k = shape + 1; k < o->world->nodes[shape].next; k++) {
        require(o, f->info.ndim < FL_MAXDIM - 1, "a field has too many axes");
        int64_t length = f->info.shape[f->info.ndim++] = number(o, k, 0, MOST_BYTES);
        require(o, !length || f->info.count <= MOST_BYTES / length, "a field is too long");
        f->info.count *= length;
    }
    require(o, f->info.count <= f->rows, "a field has fewer rows than its shape");
    require(o, f->info.ndim > 0, "a field has no axis");
    f->end = f->offset + (nbytes(f) + LINE - 1) / LINE * LINE + LINE;
}

/* Copies the lines of the image to the memory of a world: all of them, or those of fields that a reset clears. */
static void restore(record *r, int all, int64_t world) {
    const field *f = r->fields, *behind = r->fields + r->count;
    for (int64_t n = 0; n < r->lines; n++) {
        int64_t at = image_line(r, n) * LINE;
        while (f < behind && f->end <= at) f++; /* a size ends at 0 */
        if (f == behind || f->offset > at || !(all || f->reset)) continue;
        int64_t within = at - f->offset, left = nbytes(f) - within;
        if (left > 0)
            memcpy((char *)values(r, f) + world * nbytes(f) + within, r->image.at + 8 + 8 * r->lines + LINE * n,
                   (size_t)(left < LINE ? left : LINE));
    }
}

static void allocate(opening *o, record *r) {
    require(o, r->worlds <= MOST_BYTES / r->bytes, "the worlds do not fit into memory");
    r->raw = allocated(o, r->bytes * r->worlds + 2 * LINE, 1);
    r->memory = r->raw + (LINE - (uintptr_t)r->raw % LINE);
    r->table = allocated(o, FAULT_WORDS + 2 * r->count, sizeof *r->table);
    for (int k = 0; k < r->count; k++) {
        const field *f = r->fields + k;
        r->table[FAULT_WORDS + 2 * k] = f->rows ? address(values(r, f)) : f->value;
        r->table[FAULT_WORDS + 2 * k + 1] = f->rows;
    }
}

/* Reads a record of some lanes and worlds; allocates its memory with its content, and its table. */
static void read_record(opening *o, int given, int64_t lanes, int64_t worlds, record *r) {
    int list = get(o, given, "fields", '[');
    int64_t end = 0;
    r->worlds = worlds;
    r->bytes = number_of(o, given, "bytes", LINE, MOST_BYTES);
    r->fields = allocated(o, o->world->nodes[list].length, sizeof *r->fields);
    for (int n = list + 1; n < o->world->nodes[list].next; n = o->world->nodes[n].next) {
        field *f = r->fields + r->count++;
        f->info.name = text(o, n, "name");
        if (!strcmp(text(o, n, "kind"), "size")) {
            f->value = number_of(o, n, "value", -INT64_MAX, INT64_MAX);
            continue;
        }
        read_array(o, n, lanes, f);
        require(o, f->offset % LINE == 0 && f->offset >= end, "a field is not behind the others");
        end = f->end;
    }
    require(o, end <= r->bytes && r->bytes % LINE == 0, "fields do not fit into the memory of their record");
    r->image = member(o, text(o, given, "image"));
    require(o, r->image.size >= 8, "an image is too short");
    memcpy(&r->lines, r->image.at, 8);
    require(o, r->lines >= 0 && r->lines <= r->bytes / LINE && r->image.size == 8 + r->lines * (8 + LINE),
            "an image has another length than its number of lines");
    for (int64_t k = 0, before = -1; k < r->lines; before = image_line(r, k), k++)
        require(o, image_line(r, k) > before && image_line(r, k) < r->bytes / LINE, "an image has a wrong line");
    get(o, get(o, 0, "files", '{'), text(o, given, "image"), '"'); /* its hash is verified */
    allocate(o, r);
    for (int64_t k = 0; k < worlds; k++) restore(r, 1, k);
}

/* Returns a field of a record that is an array, NULL for an unknown name. */
static const field *find(const record *r, const char *name) {
    for (int k = 0; k < r->count; k++)
        if (r->fields[k].rows && !strcmp(r->fields[k].info.name, name)) return r->fields + k;
    return NULL;
}

/* Returns the record that users read, and its number of worlds. */
static const record *shown(const fl_world *w) { return w->nworld ? &w->rows : &w->data; }

static int64_t worlds_of(const fl_world *w) { return w->nworld ? w->nworld : 1; }

static const field *required(opening *o, const record *r, const char *name, fl_type type) {
    const field *found = find(r, name);
    if (!found || found->info.type != type)
        fail(o, "is not a frozen world of format %d: no field %s of the right type", FORMAT, name);
    return found;
}

static void read_state(opening *o, int state) {
    fl_world *w = o->world;
    int list = get(o, state, "parts", '[');
    int64_t end = 0;
    w->state_size = number_of(o, state, "size", 1, MOST_BYTES / worlds_of(w));
    w->state = allocated(o, w->state_size * worlds_of(w), sizeof *w->state);
    w->parts = allocated(o, w->nodes[list].length, sizeof *w->parts);
    for (int n = list + 1; n < w->nodes[list].next; n = w->nodes[n].next) {
        part *p = w->parts + w->npart++;
        require(o, w->nodes[n].kind == '[' && w->nodes[n].length == 3 && w->nodes[n + 1].kind == '"', "a part is none");
        p->field = required(o, shown(w), w->nodes[n + 1].text, FL_FLOAT64);
        p->start = number(o, n + 2, end, w->state_size);
        p->count = number(o, n + 3, 1, p->field->rows);
        end = p->start + p->count;
        require(o, end <= w->state_size, "the parts of the state are longer than the state");
    }
}

/* Writes the pointers: words of fields that hold addresses within the record. */
static void read_pointers(opening *o, int list) {
    fl_world *w = o->world;
    for (int n = list + 1; n < w->nodes[list].next; n = w->nodes[n].next) {
        int fits = 0;
        require(o, w->nodes[n].kind == '[' && w->nodes[n].length == 2, "a pointer is none");
        int64_t place = number(o, n + 1, 0, w->data.bytes - 8);
        int64_t target = (int64_t)(intptr_t)(w->data.memory + number(o, n + 2, 0, w->data.bytes - 1));
        for (const field *f = w->data.fields; f < w->data.fields + w->data.count; f++)
            fits |= f->rows && f->info.type == FL_INT64 && f->offset <= place && place < f->offset + nbytes(f);
        require(o, fits && place % 8 == 0, "a pointer is outside of its field");
        memcpy(w->data.memory + place, &target, sizeof target);
    }
}

/* Sets a field of the table of transfers, whose names the manifest lists; returns its place. */
static int set(opening *o, int names, const char *name, int64_t word) {
    int place = FAULT_WORDS;
    for (int n = names + 1; n < o->world->nodes[names].next; n = o->world->nodes[n].next, place += 2)
        if (o->world->nodes[n].kind == '"' && !strcmp(o->world->nodes[n].text, name)) {
            o->world->transfers[place] = word;
            return place;
        }
    fail(o, "is not a frozen world of format %d: no field %s of transfers", FORMAT, name);
    return 0;
}

/* Copies the model into lanes. */
static void widen(opening *o, int64_t width) {
    record *r = &o->world->wide;
    *r = o->world->model;
    r->raw = NULL, r->table = NULL, r->worlds = width;
    allocate(o, r);
    for (const field *f = r->fields; f < r->fields + r->count; f++) {
        const char *from = o->world->model.memory + f->offset;
        if (!f->real && f->rows) memcpy(values(r, f), from, (size_t)nbytes(f));
        for (int64_t i = 0; f->real && i < f->rows * width; i++)
            memcpy((char *)values(r, f) + 8 * i, from + i / width * 8, 8);
    }
}

/* Reads a batch; writes the table of transfers, which copy each field between rows of worlds and lanes of the tile. */
static void read_batch(opening *o, int batch) {
    fl_world *w = o->world;
    int table = get(o, batch, "transfers", '['), names[] = {get(o, batch, "load", '['), get(o, batch, "store", '[')};
    int64_t width = number_of(o, batch, "width", 1, LINE), nload = w->nodes[names[0]].length;
    int64_t pairs = number_of(o, batch, "pair_memory", 0, MOST_BYTES / w->nworld), k = 0;
    w->ntile = (w->nworld + width - 1) / width;
    w->stores = w->nodes[names[1]].length;
    w->forwards = number_of(o, batch, "forward_stores", 0, w->stores);
    w->skips = number_of(o, batch, "skips_outputs", 0, 1);
    widen(o, width);
    read_record(o, get(o, batch, "data", '{'), width, 1, &w->data);
    read_record(o, get(o, batch, "worlds", '{'), 1, w->nworld, &w->rows);
    int64_t count = nload + w->stores, nlane = w->ntile * width;
    int64_t *order = w->columns = allocated(o, nlane + 5 * count + w->nworld * pairs + LINE, sizeof *order);
    int64_t *row = order + nlane, *size = row + count, *stride = size + count, *tile = stride + count;
    int64_t *zeros = tile + count;
    for (int64_t i = 0; i < nlane; i++) order[i] = i < w->nworld ? i : w->nworld - 1;
    for (int list = 0; list < 2; list++)
        for (int n = names[list] + 1; n < w->nodes[names[list]].next; n = w->nodes[n].next, k++) {
            require(o, w->nodes[n].kind == '"', "a transfer is none");
            const field *f = required(o, &w->rows, w->nodes[n].text, FL_FLOAT64);
            const field *t = required(o, &w->data, w->nodes[n].text, FL_FLOAT64);
            require(o, t->lanes == width && f->info.count <= t->rows, "a transfer does not fit into the tile");
            row[k] = address(values(&w->rows, f)), tile[k] = address(values(&w->data, t));
            size[k] = f->info.count, stride[k] = f->rows;
        }
    w->transfers = allocated(o, FAULT_WORDS + 2 * w->nodes[table].length, sizeof *w->transfers);
    struct {
        const char *name;
        int64_t word;
    } words[] = {{"nworld", w->nworld}, {"nlane", nlane}, {"nthread", 1}, {"ntransfer", count}, {"nload", nload},
                 {"order", address(order)}, {"row", address(row)}, {"count", address(size)},
                 {"stride", address(stride)}, {"tile_address", address(tile)}, {"step", address(zeros)},
                 {"wide", address(zeros)}, {"recall_row", pairs ? address(zeros + count) : 0},
                 {"recall_stride", 8 * pairs}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) set(o, table, words[i].name, words[i].word);
    w->nstep_at = set(o, table, "nstep", 0);
    w->nunread_at = set(o, table, "nunread", 0);
    w->nstore_at = set(o, table, "nstore", 0);
}

static void read_queries(opening *o, int list) {
    fl_world *w = o->world;
    w->queries = allocated(o, w->nodes[list].length, sizeof *w->queries);
    for (int k = list + 1; k < w->nodes[list].next; k = w->nodes[k + 1].next) {
        query *q = w->queries + w->nquery++;
        int numbers = get(o, k + 1, "numbers", '['), given = 0; /* kind and id of an object */
        q->name = w->nodes[k].text;
        require(o, w->nodes[numbers].length == 0 || w->nodes[numbers].length == NUMBERS, "a query has other numbers");
        require(o, !w->nodes[numbers].length || w->asked.table, "a query lacks its record");
        for (int n = numbers + 1; n < w->nodes[numbers].next; n = w->nodes[n].next, q->count++)
            if ((q->given[q->count] = w->nodes[n].kind == '"')) require(o, ++given <= 2, "a query has other numbers");
            else q->numbers[q->count] = number(o, n, -INT64_MAX, INT64_MAX);
    }
}

static void read_manifest(opening *o, const char *trust) {
    fl_world *w = o->world;
    char hash[HEX + 1], *comment = w->file;
    int64_t before = o->length - HEX - (int64_t)strlen(COMMENT); /* of the comment */
    require(o, little(o, before - ZIP_END, 4) == 0x06054b50, "its zip has another end");
    comment += before;
    require(o, !memcmp(comment, COMMENT, strlen(COMMENT)), "its zip has another comment");
    span given = member(o, "manifest.json");
    hash_of(given, w->hash);
    require(o, !memcmp(w->hash, comment + strlen(COMMENT), HEX), "its comment is not the hash of manifest.json");
    if (trust && strcmp(trust, w->hash)) fail(o, "its hash is %s, trusted is %s", w->hash, trust);
    require(o, given.size < INT32_MAX, "manifest.json is too long");
    o->at = w->text = allocated(o, given.size + 1, 1);
    o->end = w->text + given.size;
    memcpy(w->text, given.at, (size_t)given.size);
    w->nodes = allocated(o, given.size + 1, sizeof *w->nodes); /* a node has at least one character */
    value(o, 0);
    require(o, o->at == o->end, "manifest.json goes on behind its object");
    int found = (int)number_of(o, 0, "format", 0, INT32_MAX);
    if (found != FORMAT) fail(o, "has format %d, this loader reads %d", found, FORMAT);
    int files = get(o, 0, "files", '{'), records = get(o, 0, "records", '{'), test = get(o, 0, "self_test", '{');
    for (int k = files + 1; k < w->nodes[files].next; k = w->nodes[k + 1].next) {
        hash_of(member(o, w->nodes[k].text), hash);
        require(o, !strcmp(hash, text(o, files, w->nodes[k].text)), "a member has another hash");
    }
    read_record(o, get(o, records, "model", '{'), 1, 1, &w->model);
    int batch = get(o, 0, "batch", '{'), queries = get(o, 0, "queries", '{');
    if (w->nworld && !w->nodes[batch].length)
        fail(o, "has no batch; freeze the model with width=(1, \"batch\")");
    if (w->nworld) {
        read_batch(o, batch);
    } else {
        read_record(o, get(o, records, "data", '{'), 1, 1, &w->data);
        if (w->nodes[queries].length) read_record(o, get(o, records, "queries", '{'), 1, 1, &w->asked);
        read_queries(o, queries);
    }
    read_state(o, get(o, 0, "state", '{'));
    read_pointers(o, get(o, w->nworld ? batch : 0, "pointers", '['));
    for (int c = 0; c < CONTACTS && !w->nworld; c++) {
        fl_type type = c != PRESENT && c < DIST ? FL_INT32 : FL_FLOAT64;
        const field *f = w->contacts[c] = required(o, &w->data, COLUMNS[c].name, type);
        require(o, f->rows == (c == COUNT ? 1 : w->contacts[c == PRESENT ? c : PRESENT]->rows * COLUMNS[c].width),
                "fields of contacts differ in length");
    }
    w->version = text(o, 0, "featherlane");
    w->names = get(o, 0, "names", '{');
    w->found_bad = required(o, &w->data, "found_bad", FL_INT32);
    w->ctrl = required(o, shown(w), "ctrl", FL_FLOAT64);
    w->test_steps = number_of(o, test, "steps", 1, MOST_TESTS);
    w->test_blocks = number_of(o, test, "blocks", 1, MOST_TESTS);
    w->test_hash = text(o, test, "hash");
    w->controls = member(o, "controls.bin");
    get(o, files, "controls.bin", '"');
    require(o, w->controls.size == 8 * w->test_blocks * w->ctrl->info.count, "controls do not fit");
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */
/* Returns whether this processor has the instructions of a CPU level. */
static int has_level(const char *level) {
#if defined(__x86_64__)
#define HAS(feature) (__builtin_cpu_supports(feature) != 0)
    __builtin_cpu_init();
    int v3 = HAS("avx2") && HAS("fma") && HAS("bmi") && HAS("bmi2");
    int v4 = v3 && HAS("avx512f") && HAS("avx512bw") && HAS("avx512cd") && HAS("avx512dq") && HAS("avx512vl");
    return !strcmp(level, "x86-64-v4") ? v4 : !strcmp(level, "x86-64-v3") ? v3 : !strcmp(level, "x86-64") && HAS("avx");
#else
    return !strcmp(level, ARCHITECTURE);
#endif
}

/* Maps a shared object from memory.  Its file stays open with the world, because dlopen would return this library for
   another file of the same name; the name differs from those of other programs. */
static void *mapped(opening *o, span content) {
    char path[64];
    int descriptor = (int)syscall(SYS_memfd_create, "featherlane", 1u); /* 1: closed by exec */
    int64_t done = 0, written = descriptor < 0 ? -1 : 1;
    o->world->descriptor = descriptor;
    while (done < content.size && written > 0)
        done += written = write(descriptor, content.at + done, (size_t)(content.size - done));
    snprintf(path, sizeof path, "/proc/self/fd/../fd/%d", descriptor);
    void *library = written > 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) fail(o, "its kernels cannot be mapped: %s", written > 0 ? dlerror() : "not enough memory");
    return library;
}

static void *kernel(opening *o, const char *name) {
    void *found = dlsym(o->world->library, name);
    require(o, found != NULL, "its kernels lack a function");
    return found;
}

static void map_kernels(opening *o) {
    fl_world *w = o->world;
    int targets = get(o, 0, "targets", '['), symbols = get(o, 0, "symbols", '{'), chosen = -1;
    for (int n = targets + 1; n < w->nodes[targets].next; n = w->nodes[n].next) {
        int fits = !strcmp(text(o, n, "system"), "linux") && !strcmp(text(o, n, "architecture"), ARCHITECTURE);
        get(o, get(o, 0, "files", '{'), text(o, n, "file"), '"'); /* the hash of this member is verified */
        if (chosen < 0 && fits && has_level(text(o, n, "name"))) chosen = n;
    }
    if (chosen < 0) fail(o, "has no kernels for this processor");
    w->target = text(o, chosen, "name");
    w->library = mapped(o, member(o, text(o, chosen, "file")));
    const char *layout = dlsym(w->library, "featherlane_layout");
    require(o, layout && !strcmp(layout, text(o, 0, "layout")), "its kernels have other record layouts");
    void *step = kernel(o, text(o, symbols, "step")), *forward = kernel(o, text(o, symbols, "forward"));
    memcpy(&w->step, &step, sizeof step); /* ISO C converts no object pointer to a function pointer */
    memcpy(&w->forward, &forward, sizeof forward);
    void *run = w->nworld ? kernel(o, text(o, get(o, 0, "batch", '{'), "symbol")) : NULL;
    memcpy(&w->run, &run, sizeof run);
    for (query *q = w->queries; q < w->queries + w->nquery; q++)
        q->kernel = kernel(o, text(o, get(o, get(o, 0, "queries", '{'), q->name, '{'), "symbol"));
}

static fl_world *opened(const char *path, const char *trust, int64_t nworld, char *error, size_t size) {
    opening o = {.error = error, .size = size, .world = calloc(1, sizeof(fl_world))};
    if (setjmp(o.leave)) {
        fl_close(o.world);
        return NULL;
    }
    if (!o.world) fail(&o, "not enough memory");
    o.world->descriptor = -1;
    o.world->nworld = nworld;
    read_file(&o, path);
    read_manifest(&o, trust);
    map_kernels(&o);
    if (error && size) *error = 0;
    return o.world;
}

fl_world *fl_open(const char *path, const char *trust, char *error, size_t size) {
    return opened(path, trust, 0, error, size);
}

fl_world *fl_open_batch(const char *path, const char *trust, int64_t nworld, char *error, size_t size) {
    if (nworld > 0 && nworld <= MOST_WORLDS) return opened(path, trust, nworld, error, size);
    if (error && size) snprintf(error, size, "got %lld worlds, allowed are 1 to %d", (long long)nworld, MOST_WORLDS);
    return NULL;
}

void fl_close(fl_world *w) {
    if (!w) return;
    if (w->library) dlclose(w->library);
    if (w->descriptor >= 0) close(w->descriptor);
    w->wide.fields = NULL; /* those of the model */
    record *const records[] = {&w->model, &w->data, &w->asked, &w->wide, &w->rows};
    for (int k = 0; k < 5; k++) free(records[k]->fields), free(records[k]->raw), free(records[k]->table);
    free(w->queries), free(w->transfers), free(w->columns);
    free(w->parts), free(w->state), free(w->nodes), free(w->text), free(w->file), free(w);
}

/* ---- calls without allocation and system call -------------------------------------------------------------------- */
/* Takes n steps of all worlds of a batch, or a forward pass (0). */
static void run_tiles(fl_world *w, int64_t n) {
    w->transfers[w->nstep_at] = n;
    w->transfers[w->nunread_at] = w->skips && n > 1 ? n - 1 : 0;
    w->transfers[w->nstore_at] = n ? w->stores : w->forwards;
    w->run(w->wide.table, w->data.table, w->transfers, 0, 0, w->ntile);
}

int fl_step(fl_world *w, int64_t n) {
    if (!w->nworld) w->step(w->model.table, w->data.table, n);
    else if (n > 0) run_tiles(w, n);
    return *(int32_t *)values(&w->data, w->found_bad);
}

int fl_forward(fl_world *w) {
    if (!w->nworld) w->forward(w->model.table, w->data.table);
    else run_tiles(w, 0);
    return *(int32_t *)values(&w->data, w->found_bad);
}

void fl_reset_world(fl_world *w, int64_t world) {
    record *r = w->nworld ? &w->rows : &w->data;
    if (world < 0 || world >= worlds_of(w)) return;
    for (const field *f = r->fields; f < r->fields + r->count; f++)
        if (f->reset) memset((char *)values(r, f) + world * nbytes(f), 0, (size_t)nbytes(f));
    restore(r, 0, world);
}

void fl_reset(fl_world *w) {
    for (int64_t k = 0; k < worlds_of(w); k++) fl_reset_world(w, k);
    *(int32_t *)values(&w->data, w->found_bad) = 0;
}

int fl_query(fl_world *w, const char *name, const int64_t *numbers) {
    const query *q = w->queries;
    int64_t n[NUMBERS] = {0};
    while (q < w->queries + w->nquery && strcmp(q->name, name)) q++;
    if (q == w->queries + w->nquery) return 0;
    for (int k = 0; k < q->count; k++) {
        if (q->given[k] && !numbers) return 0;
        n[k] = q->given[k] ? *numbers++ : q->numbers[k];
    }
    int32_t (*plain)(int64_t *, int64_t *);
    int32_t (*asked)(int64_t *, int64_t *, int64_t *, int64_t, int64_t, int64_t, int64_t);
    memcpy(&plain, &q->kernel, sizeof plain);
    memcpy(&asked, &q->kernel, sizeof asked);
    if (q->count) asked(w->model.table, w->data.table, w->asked.table, n[0], n[1], n[2], n[3]);
    else plain(w->model.table, w->data.table);
    return 1;
}

static int described(const record *r, const char *name, fl_field *out) {
    const field *f = find(r, name);
    if (!f) return 0;
    *out = f->info;
    out->values = values(r, f);
    return 1;
}

int fl_find(const fl_world *w, const char *name, fl_field *out) {
    int found = described(shown(w), name, out) || described(&w->asked, name, out);
    if (found && w->nworld) { /* a first axis for worlds */
        memmove(out->shape + 1, out->shape, (size_t)out->ndim++ * sizeof *out->shape);
        out->shape[0] = w->nworld;
        out->count *= w->nworld;
    }
    return found;
}

int fl_find_constant(const fl_world *w, const char *name, fl_field *out) { return described(&w->model, name, out); }

double *fl_reals(const fl_world *w, const char *name) {
    fl_field found;
    return fl_find(w, name, &found) && found.type == FL_FLOAT64 ? found.values : NULL;
}

int64_t fl_size(const fl_world *w, const char *name) {
    if (!strcmp(name, "nworld")) return worlds_of(w);
    for (const record *r = &w->model; r; r = r == &w->model ? &w->data : NULL)
        for (const field *f = r->fields; f < r->fields + r->count; f++)
            if (!f->rows && !strcmp(f->info.name, name)) return f->value;
    return -1;
}

int fl_id(const fl_world *w, const char *kind, const char *name) {
    const node *nodes = w->nodes;
    for (int k = w->names + 1; k < nodes[w->names].next; k = nodes[k + 1].next)
        if (!strcmp(nodes[k].text, kind) && nodes[k + 1].kind == '[' && *name)
            for (int n = k + 2, id = 0; n < nodes[k + 1].next; n = nodes[n].next, id++)
                if (nodes[n].kind == '"' && !strcmp(nodes[n].text, name)) return id;
    return -1;
}

int64_t fl_state_size(const fl_world *w) { return w->state_size; }

/* Returns where a part of a world's state is. */
static double *place(const fl_world *w, const part *p, int64_t world) {
    return (double *)values(shown(w), p->field) + world * p->field->rows;
}

void fl_get_state(const fl_world *w, double *state) {
    memset(state, 0, (size_t)(worlds_of(w) * w->state_size) * sizeof *state);
    for (int64_t k = 0; k < worlds_of(w); k++, state += w->state_size)
        for (const part *p = w->parts; p < w->parts + w->npart; p++)
            memcpy(state + p->start, place(w, p, k), (size_t)p->count * sizeof *state);
}

void fl_set_state(fl_world *w, const double *state) {
    for (int64_t k = 0; k < worlds_of(w); k++, state += w->state_size)
        for (const part *p = w->parts; p < w->parts + w->npart; p++)
            memcpy(place(w, p, k), state + p->start, (size_t)p->count * sizeof *state);
}

static const void *column(const fl_world *w, int c) { return values(&w->data, w->contacts[c]); }

/* Returns the slot of a contact, or -1; *before: the number of contacts up to it. */
static int64_t slot_of(const fl_world *w, int number, int *before) {
    *before = 0;
    if (w->nworld) return -1;
    const double *present = column(w, PRESENT);
    for (int64_t k = 0; k < *(const int32_t *)column(w, COUNT) && k < w->contacts[PRESENT]->rows; k++)
        if (present[k] != 0.0 && (*before)++ == number) return k;
    return -1;
}

int fl_contact_count(const fl_world *w) {
    int found;
    slot_of(w, -1, &found);
    return found;
}

int fl_contact_at(const fl_world *w, int number, fl_contact *out) {
    int before;
    int64_t k = slot_of(w, number, &before);
    if (k < 0) return 0;
    double *to[] = {&out->dist, out->pos, out->frame, &out->includemargin, out->friction, out->force};
    for (int c = DIST; c < CONTACTS; c++)
        for (int i = 0; i < COLUMNS[c].width; i++)
            to[c - DIST][i] = ((const double *)column(w, c))[COLUMNS[c].width * k + i];
    out->dim = ((const int32_t *)column(w, DIM))[k];
    memcpy(out->geom, (const int32_t *)column(w, GEOM) + 2 * k, sizeof out->geom);
    return 1;
}

int fl_self_test(fl_world *w) {
    char hash[HEX + 1];
    sha256 h = START;
    int64_t bytes = 8 * w->ctrl->info.count, size = w->state_size;
    int equal = 1; /* all worlds */
    fl_reset(w);
    for (int64_t k = 0; k < w->test_blocks; k++) {
        for (int64_t i = 0; i < worlds_of(w); i++)
            memcpy((char *)values(shown(w), w->ctrl) + i * nbytes(w->ctrl), w->controls.at + k * bytes, (size_t)bytes);
        fl_step(w, w->test_steps);
        fl_get_state(w, w->state);
        for (int64_t i = 1; i < worlds_of(w); i++) equal &= !memcmp(w->state, w->state + i * size, (size_t)size * 8);
        sha_add(&h, w->state, size * (int64_t)sizeof *w->state);
    }
    sha_end(&h, hash);
    fl_reset(w);
    return equal && !strcmp(hash, w->test_hash);
}

const char *fl_hash(const fl_world *w) { return w->hash; }
const char *fl_target(const fl_world *w) { return w->target; }
const char *fl_version(const fl_world *w) { return w->version; }
