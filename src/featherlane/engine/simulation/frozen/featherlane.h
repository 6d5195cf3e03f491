/* Steps a frozen world of Featherlane (a .flz file) from C99 or C++, without Python.

   Build:     gcc -std=c99 -O2 program.c featherlane.c -ldl
   Systems:   Linux on x86-64 and AArch64; GCC or Clang.
   Real time: only fl_open and fl_close allocate memory or make system calls; no function takes a lock.
              mlockall(MCL_CURRENT | MCL_FUTURE) after a few steps avoids page faults, too.
   Threads:   one world serves one thread at a time; different worlds may run in different threads.
   Trust:     a file has machine code, which runs with all rights of the process.  Give fl_open the hash of the file.
   Units:     SI.  Names, shapes and meanings of fields: docs/fields.md. */
#ifndef FEATHERLANE_H
#define FEATHERLANE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fl_world fl_world;
typedef enum { FL_FLOAT64, FL_INT32, FL_INT64 } fl_type;
enum { FL_MAXDIM = 4 };
enum { FL_NON_FINITE = 1, FL_FULL = 2 }; /* bits that fl_step and fl_forward return */

/* A field.  `values` has `count` numbers, the last index of the shape varies fastest; the memory is live. */
typedef struct {
    const char *name, *unit;
    fl_type type;
    int ndim;
    int64_t shape[FL_MAXDIM], count;
    int writable; /* 1: state, control or other input; 0: computed, do not write */
    int whole;    /* 1: whole numbers, also those of type FL_FLOAT64 */
    void *values;
} fl_field;

/* A contact.  The rows of `frame` are the normal, from geom 0 to geom 1, and two tangents.  `force` is the force along
   these [N], and the moment about them [N m]. */
typedef struct {
    double dist, pos[3], frame[9], includemargin, friction[5], force[6];
    int32_t dim, geom[2];
} fl_contact;

/* Opens a file.  trust: its hash, 64 hexadecimal digits, or NULL.  Returns NULL after an error, whose text is written
   to `error` (`size` bytes, or NULL). */
fl_world *fl_open(const char *path, const char *trust, char *error, size_t size);

/* Opens nworld worlds that step together, in vector registers, if the file has a batch.  Fields of the world, and the
   state, have the number of the world as their first axis.  A batch has no contacts and no queries. */
fl_world *fl_open_batch(const char *path, const char *trust, int64_t nworld, char *error, size_t size);

/* Frees a world; NULL is allowed. */
void fl_close(fl_world *world);

/* Takes n steps of opt_timestep [s].  Returns bits of what has happened since the last reset: FL_NON_FINITE, a value
   was NaN or beyond 1e10, and the world was reset; FL_FULL, contacts or rows did not fit. */
int fl_step(fl_world *world, int64_t n);

/* Computes all fields of the present state without a step; returns the bits of fl_step. */
int fl_forward(fl_world *world);

/* Resets to the state that the file has, all worlds or one; all derived fields become zero. */
void fl_reset(fl_world *world);
void fl_reset_world(fl_world *world, int64_t number);

/* Computes a query of the fields of the last step or forward pass.  `numbers` are its integers, or NULL if it has none.
   docs/frozen.md lists queries, their integers, and the fields that they read and write.  Returns 1, or 0 if the file
   has no such query. */
int fl_query(fl_world *world, const char *name, const int64_t *numbers);

/* Finds a field of the world by name, or a constant of the model, such as body_mass, which must not be written.
   Returns 1, or 0 for an unknown name. */
int fl_find(const fl_world *world, const char *name, fl_field *field);
int fl_find_constant(const fl_world *world, const char *name, fl_field *field);

/* Returns the numbers of a float64 field of the world; NULL for another name.  `fl_reals(w, "qpos")` has nq numbers. */
double *fl_reals(const fl_world *world, const char *name);

/* Returns a size, such as nworld, nq, nv, nu or nbody; -1 for an unknown name. */
int64_t fl_size(const fl_world *world, const char *name);

/* Returns the id of an object ("body", "joint", "actuator", "sensor", ...) by its name; -1 if there is none. */
int fl_id(const fl_world *world, const char *kind, const char *name);

/* The state: all that a step reads, with the layout of MuJoCo's mj_getState for mjSTATE_INTEGRATION.  fl_get_state
   writes, and fl_set_state reads, fl_state_size numbers for each world. */
int64_t fl_state_size(const fl_world *world);
void fl_get_state(const fl_world *world, double *state);
void fl_set_state(fl_world *world, const double *state);

/* Returns the number of contacts of the last step or forward pass, and a contact by its number (1, or 0 without it). */
int fl_contact_count(const fl_world *world);
int fl_contact_at(const fl_world *world, int number, fl_contact *contact);

/* Returns whether this machine computes the states of the file's self-test, bit for bit; the world is reset. */
int fl_self_test(fl_world *world);

/* Return the hash of the file, the CPU level of the kernels in use, and the version of Featherlane that wrote it. */
const char *fl_hash(const fl_world *world);
const char *fl_target(const fl_world *world);
const char *fl_version(const fl_world *world);

#ifdef __cplusplus
}
#endif

#endif
