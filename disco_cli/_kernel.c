/* The inner loops of scoring on blocks of float32, each with the bits of the numpy functions that it
 * stands for (disco_cli/kernel.py names them and checks that).
 *
 * numpy needs a pass over the block for each operation and a microsecond of the interpreter for each
 * call, which threads wait for. Here a block is gone through while it is in the cache and the
 * interpreter is free. Logarithms are numpy's own: its inner loop is called, so they cannot differ.
 *
 * Written for GCC and Clang; built with -ffp-contract=off, as a fused product rounds otherwise. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>
#include <numpy/ufuncobject.h>

#include <float.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#if (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16) || defined(__FAST_MATH__) /* 16: _Float16 */
#error "floats are rounded otherwise than numpy rounds them"
#endif

/* One version for each vector width, chosen when the module is loaded. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define WIDE __attribute__((target_clones("avx2", "default")))
#endif
#else
#define WIDE
#endif

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

static const float UNITS = 1099511627776.0f; /* 2^40, as in disagreement/state.py */
enum { CHUNK = 4096 };                       /* values whose logarithms stay in the first cache */
enum { SHORT = 16 };                         /* rows for which starting a vector loop costs more */
enum { PART = 1 << 16 };                     /* values read from files at once */

static PyUFuncGenericFunction log_loop;
static void *log_data;

/* ---- loops ------------------------------------------------------------------------------------ */

static inline int32_t bits_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Look at a row: write x + the smallest normal number, with which 0 ln 0 is 0, the bits of its highest
 * value, and return whether it is certainly one of probabilities. Floats that are not negative are in
 * the order of their bits; negative ones and -0 are negative as integers, NaN and infinity above all
 * others. */
static inline int look(const float *restrict x, Py_ssize_t C, float tolerance,
                       float *restrict shifted, int32_t *highest) {
    const int32_t *bits = (const int32_t *)x;
    float sum = 0;
    int32_t least = INT32_MAX, top = INT32_MIN;
    if (C < SHORT) {
        for (Py_ssize_t c = 0; c < C; c++) {
            shifted[c] = x[c] + FLT_MIN;
            sum += x[c];
            least = bits[c] < least ? bits[c] : least;
            top = bits[c] > top ? bits[c] : top;
        }
    } else {
#pragma omp simd reduction(+ : sum) reduction(min : least) reduction(max : top)
        for (Py_ssize_t c = 0; c < C; c++) {
            shifted[c] = x[c] + FLT_MIN;
            sum += x[c];
            least = bits[c] < least ? bits[c] : least;
            top = bits[c] > top ? bits[c] : top;
        }
    }
    *highest = top;
    return least >= 0 && top <= bits_of(1 + tolerance) && sum >= 1 - tolerance &&
           sum <= 1 + tolerance;
}

WIDE static int look_at_rows(const float *x, Py_ssize_t n, Py_ssize_t C, float tolerance,
                             float *shifted, float *top) {
    int certain = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t highest;
        certain &= look(x + i * C, C, tolerance, shifted + i * C, &highest);
        memcpy(top + i, &highest, sizeof highest);
    }
    return certain;
}

static inline Four some(const float *x, Py_ssize_t count) {
    Four result = {0, 0, 0, 0};
    for (Py_ssize_t i = 0; i < count; i++)
        result[i] = x[i];
    return result;
}

/* Sums of products of `rows` rows at once, so that no addition waits for the one before. A row is
 * added up in the order of np.einsum("ij,ij->i"): four sums side by side, which take sixteen values
 * from the last four to the first, then what is left from the first four to the last. */
static inline void row_dots(const float *x, const float *y, int rows, Py_ssize_t C, float *out) {
    Four sums[4] = {{0}};
    Py_ssize_t c = 0;
    for (; c + 16 <= C; c += 16)
        for (int part = 12; part >= 0; part -= 4)
            for (int i = 0; i < rows; i++)
                sums[i] += *(const Four *)(x + i * C + c + part) * *(const Four *)(y + i * C + c + part);
    for (; c + 4 <= C; c += 4)
        for (int i = 0; i < rows; i++)
            sums[i] += *(const Four *)(x + i * C + c) * *(const Four *)(y + i * C + c);
    for (int i = 0; i < rows; i++) {
        if (c < C)
            sums[i] += some(x + i * C + c, C - c) * some(y + i * C + c, C - c);
        out[i] = (sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]);
    }
}

/* Write -H(p) and the highest probability of n rows, and return whether all are certainly
 * probabilities; `logs` has room for the values of `step` rows. */
static int row_figures(const float *p, Py_ssize_t n, Py_ssize_t C, float tolerance, Py_ssize_t step,
                       float *logs, float *negated, float *top) {
    int certain = 1;
    for (Py_ssize_t start = 0; start < n; start += step) {
        const Py_ssize_t rows = n - start < step ? n - start : step;
        const float *x = p + start * C;
        char *args[2] = {(char *)logs, (char *)logs};
        npy_intp count = rows * C, strides[2] = {sizeof *logs, sizeof *logs};
        Py_ssize_t i = 0;
        certain &= look_at_rows(x, rows, C, tolerance, logs, top + start);
        log_loop(args, &count, strides, log_data);
        for (; i + 4 <= rows; i += 4)
            row_dots(x + i * C, logs + i * C, 4, C, negated + start + i);
        for (; i < rows; i++)
            row_dots(x + i * C, logs + i * C, 1, C, negated + start + i);
    }
    return certain;
}

/* The first class whose probability is the highest one of its row. */
WIDE static int64_t answer(const float *restrict x, Py_ssize_t C, float top) {
    int32_t first = INT32_MAX;
#pragma omp simd reduction(min : first)
    for (int32_t c = 0; c < (int32_t)C; c++) {
        const int32_t here = x[c] == top ? c : INT32_MAX;
        first = here < first ? here : first;
    }
    return first;
}

WIDE static void add_values(const float *restrict p, float *restrict sums, float *restrict maximum,
                            Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        sums[i] += p[i];
        maximum[i] = p[i] > maximum[i] ? p[i] : maximum[i];
    }
}

WIDE static void begin_values(const float *restrict p, float *restrict sums, float *restrict maximum,
                              Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        sums[i] = p[i];
        maximum[i] = p[i] > maximum[i] ? p[i] : maximum[i];
    }
}

WIDE static void add_rounded(float *restrict sums, int64_t *restrict total, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        total[i] += (int64_t)(sums[i] * UNITS);
        sums[i] = 0;
    }
}

/* Half precision to single: the exponent moves by 127 - 15, that of infinity and NaN by as much again.
 * Numbers with the smallest exponent have no leading one: they are put behind that of 2^-14, which is
 * then taken off (a product would do as well, but processors are slow where numbers are not normal). */
WIDE static void widen_bits(const uint16_t *restrict halves, uint32_t *restrict singles,
                            Py_ssize_t count) {
    const uint32_t shift_of = 112u << 23, smallest = 113u << 23;
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint32_t half = halves[i], moved = (half & 0x7fff) << 13, exponent = half & 0x7c00;
        const uint32_t usual = moved + shift_of + (exponent == 0x7c00 ? shift_of : 0);
        const uint32_t behind = moved + smallest;
        float small;
        uint32_t bits;
        memcpy(&small, &behind, sizeof small);
        small -= 6.103515625e-05f; /* 2^-14 */
        memcpy(&bits, &small, sizeof bits);
        singles[i] = (exponent == 0 ? bits : usual) | (half & 0x8000) << 16;
    }
}

#ifdef __x86_64__
/* The same by an instruction of F16C, which all processors with AVX2 have. */
__attribute__((target("avx2,f16c"))) static void widen_eights(const uint16_t *halves, uint32_t *singles,
                                                              Py_ssize_t eights) {
    for (Py_ssize_t i = 0; i < eights; i++) {
        const __m128i eight = _mm_loadu_si128((const __m128i *)(halves + 8 * i));
        _mm256_storeu_ps((float *)(singles + 8 * i), _mm256_cvtph_ps(eight));
    }
}
#endif

static void widen_values(const uint16_t *halves, uint32_t *singles, Py_ssize_t count) {
    Py_ssize_t done = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        widen_eights(halves, singles, count / 8);
        done = count / 8 * 8;
    }
#endif
    widen_bits(halves + done, singles + done, count - done);
}

/* Where the same rows of some models lie, and what is added to of them: (n, C) or (n,). */
typedef struct {
    Py_ssize_t n_models, n, C, item;
    const int64_t *handles, *offsets;
    float *sums, *maximum;
    int64_t *entropy, *confidence, *answers; /* answers (M, n), or NULL */
} Rows;

/* Read `n` rows from `start` on of all models, as floats. */
static int read_rows(const Rows *rows, Py_ssize_t start, Py_ssize_t n, void *stored, float *values) {
    const size_t row_bytes = (size_t)(rows->C * rows->item), size = (size_t)n * row_bytes;
    for (Py_ssize_t m = 0; m < rows->n_models; m++) {
        float *own = values + m * n * rows->C;
        void *target = rows->item == sizeof *own ? (void *)own : stored;
        const int handle = (int)rows->handles[m];
        int64_t place;
        if (__builtin_add_overflow(rows->offsets[m], start * (int64_t)row_bytes, &place) ||
            handle != rows->handles[m] || pread(handle, target, size, place) != (ssize_t)size)
            return 0;
        if (target == stored)
            widen_values(stored, (uint32_t *)own, n * rows->C);
    }
    return 1;
}

/* Add rows as long as they are certainly probabilities; return how many that were. */
static Py_ssize_t add_rows(const Rows *rows, float tolerance, int first, float *values, void *stored,
                           float *logs, float *figures) {
    const Py_ssize_t M = rows->n_models, C = rows->C;
    const Py_ssize_t part = PART > M * C ? PART / (M * C) : 1, step = CHUNK > C ? CHUNK / C : 1;
    Py_ssize_t start = 0;
    while (start < rows->n) {
        const Py_ssize_t n = rows->n - start < part ? rows->n - start : part, size = n * C;
        float *negated = figures, *top = figures + M * n;
        if (!read_rows(rows, start, n, stored, values) ||
            !row_figures(values, M * n, C, tolerance, step, logs, negated, top))
            break;
        for (Py_ssize_t m = 0; m < M; m++) {
            const float *own = values + m * size;
            if (first && m == 0)
                begin_values(own, rows->sums + start * C, rows->maximum + start * C, size);
            else
                add_values(own, rows->sums + start * C, rows->maximum + start * C, size);
            for (Py_ssize_t i = 0; i < n; i++) {
                rows->entropy[start + i] -= (int64_t)(negated[m * n + i] * UNITS);
                rows->confidence[start + i] += (int64_t)(top[m * n + i] * UNITS);
                if (rows->answers != NULL)
                    rows->answers[m * rows->n + start + i] = answer(own + i * C, C, top[m * n + i]);
            }
        }
        start += n;
    }
    return start;
}

/* ---- what Python calls ------------------------------------------------------------------------ */

enum { MOST = 7 };

typedef struct {
    Py_buffer held[MOST];
    int count;
} Buffers;

static void release(Buffers *buffers) {
    while (buffers->count)
        PyBuffer_Release(&buffers->held[--buffers->count]);
}

/* What arrays hold, by the letters of the module struct; numpy has two for int64. */
#define HALVES "e"
#define FLOATS "f"
#define INTEGERS (sizeof(long) == sizeof(int64_t) ? "lq" : "q")

static int holds(const Py_buffer *buffer, const char *types) {
    const char *format = buffer->format;
    return format != NULL && format[0] != '\0' && format[1] == '\0' && strchr(types, format[0]) &&
           (uintptr_t)buffer->buf % (size_t)buffer->itemsize == 0;
}

/* Return the memory of `count` items of an argument, of any number that is written to `count` if
 * that is negative, or NULL with an exception. */
static void *memory_of(Buffers *buffers, PyObject *array, const char *types, Py_ssize_t *count,
                       int written) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0);
    Py_buffer *buffer = &buffers->held[buffers->count];
    if (PyObject_GetBuffer(array, buffer, flags) < 0)
        return NULL;
    buffers->count++;
    if (!holds(buffer, types) || (*count >= 0 && buffer->len / buffer->itemsize != *count)) {
        PyErr_SetString(PyExc_ValueError, "an array has another type or shape than is needed");
        return NULL;
    }
    *count = buffer->len / buffer->itemsize;
    return buffer->buf;
}

/* Write the size of each of so many equal parts; returns 0, with an exception, if there are none. */
static int divide(Py_ssize_t count, Py_ssize_t parts, Py_ssize_t *size) {
    if (parts < 1 || count % parts != 0) {
        PyErr_SetString(PyExc_ValueError, "an array has another type or shape than is needed");
        return 0;
    }
    *size = count / parts;
    return 1;
}

/* Return room for so many floats, or NULL with an exception. */
static float *room_for(Py_ssize_t count) {
    float *room = PyMem_RawMalloc((size_t)(count + 1) * sizeof *room);
    if (room == NULL)
        PyErr_NoMemory();
    return room;
}

static PyObject *done(Buffers *buffers, int failed) {
    release(buffers);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *figures(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *array, *out;
    Py_ssize_t C, n, count = -1;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OnO", &array, &C, &out))
        return NULL;
    const float *p = memory_of(&buffers, array, FLOATS, &count, 0);
    if (p == NULL || !divide(count, C, &n))
        return done(&buffers, 1);
    const Py_ssize_t step = C < CHUNK ? CHUNK / C : 1;
    Py_ssize_t pairs = 2 * n;
    float *result = memory_of(&buffers, out, FLOATS, &pairs, 1);
    float *logs = result == NULL ? NULL : room_for(n ? step * C : 0);
    if (logs == NULL)
        return done(&buffers, 1);
    Py_BEGIN_ALLOW_THREADS
    row_figures(p, n, C, 0, step, logs, result, result + n);
    Py_END_ALLOW_THREADS
    PyMem_RawFree(logs);
    return done(&buffers, 0);
}

static PyObject *are_probabilities(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *array;
    Py_ssize_t C, n, count = -1;
    float tolerance, top;
    int certain = 1;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "Onf", &array, &C, &tolerance))
        return NULL;
    const float *x = memory_of(&buffers, array, FLOATS, &count, 0);
    float *unused = x == NULL || !divide(count, C, &n) ? NULL : room_for(n ? C : 0);
    if (unused == NULL)
        return done(&buffers, 1);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n && certain; i++)
        certain = look_at_rows(x + i * C, 1, C, tolerance, unused, &top);
    Py_END_ALLOW_THREADS
    PyMem_RawFree(unused);
    release(&buffers);
    return PyBool_FromLong(certain);
}

static PyObject *add(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *array, *summed, *highest;
    Py_ssize_t n_models, size, count = -1;
    int first;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OnOOp", &array, &n_models, &summed, &highest, &first))
        return NULL;
    const float *p = memory_of(&buffers, array, FLOATS, &count, 0);
    if (p == NULL || !divide(count, n_models, &size))
        return done(&buffers, 1);
    float *sums = memory_of(&buffers, summed, FLOATS, &size, 1);
    float *maximum = sums == NULL ? NULL : memory_of(&buffers, highest, FLOATS, &size, 1);
    if (maximum == NULL)
        return done(&buffers, 1);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t start = 0; start < size; start += CHUNK) {
        const Py_ssize_t part = size - start < CHUNK ? size - start : CHUNK;
        for (Py_ssize_t m = 0; m < n_models; m++) {
            const float *values = p + m * size + start;
            if (first && m == 0)
                begin_values(values, sums + start, maximum + start, part);
            else
                add_values(values, sums + start, maximum + start, part);
        }
    }
    Py_END_ALLOW_THREADS
    return done(&buffers, 0);
}

static PyObject *add_units(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *summed, *rounded;
    Py_ssize_t count = -1;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OO", &summed, &rounded))
        return NULL;
    float *sums = memory_of(&buffers, summed, FLOATS, &count, 1);
    int64_t *total = sums == NULL ? NULL : memory_of(&buffers, rounded, INTEGERS, &count, 1);
    if (total == NULL)
        return done(&buffers, 1);
    Py_BEGIN_ALLOW_THREADS
    add_rounded(sums, total, count);
    Py_END_ALLOW_THREADS
    return done(&buffers, 0);
}

static PyObject *add_files(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *handles, *offsets, *sums, *maximum, *entropy, *confidence, *answers;
    Rows rows = {0};
    Py_ssize_t values, all, row, M = -1;
    float tolerance;
    int first;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OOnnnfOOpOOO", &handles, &offsets, &rows.item, &rows.n, &rows.C,
                          &tolerance, &sums, &maximum, &first, &entropy, &confidence, &answers))
        return NULL;
    rows.handles = memory_of(&buffers, handles, INTEGERS, &M, 0);
    if (rows.handles == NULL)
        return done(&buffers, 1);
    if ((rows.item != 2 && rows.item != 4) || M < 1 || rows.n < 0 || rows.C < 1 ||
        rows.C > INT32_MAX / 16 || __builtin_mul_overflow(rows.n, rows.C, &values) ||
        __builtin_mul_overflow(M, rows.n, &all) || __builtin_mul_overflow(M, rows.C, &row) ||
        row > PY_SSIZE_T_MAX / 64) {
        PyErr_SetString(PyExc_ValueError, "rows of another shape than can be read");
        return done(&buffers, 1);
    }
    rows.n_models = M;
    rows.offsets = memory_of(&buffers, offsets, INTEGERS, &M, 0);
    if (rows.offsets != NULL)
        rows.sums = memory_of(&buffers, sums, FLOATS, &values, 1);
    if (rows.sums != NULL)
        rows.maximum = memory_of(&buffers, maximum, FLOATS, &values, 1);
    if (rows.maximum != NULL)
        rows.entropy = memory_of(&buffers, entropy, INTEGERS, &rows.n, 1);
    if (rows.entropy != NULL)
        rows.confidence = memory_of(&buffers, confidence, INTEGERS, &rows.n, 1);
    if (rows.confidence != NULL && answers != Py_None)
        rows.answers = memory_of(&buffers, answers, INTEGERS, &all, 1);
    if (PyErr_Occurred())
        return done(&buffers, 1);
    const Py_ssize_t part = PART > row ? PART : row; /* values of at least one row of each model */
    float *room = room_for(2 * part + (CHUNK > rows.C ? CHUNK : rows.C) + 2 * part);
    if (room == NULL)
        return done(&buffers, 1);
    Py_ssize_t added;
    Py_BEGIN_ALLOW_THREADS
    added = add_rows(&rows, tolerance, first, room, room + part, room + 4 * part, room + 2 * part);
    Py_END_ALLOW_THREADS
    PyMem_RawFree(room);
    release(&buffers);
    return PyLong_FromSsize_t(added);
}

static PyObject *widen(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *halves, *singles;
    Py_ssize_t count = -1;
    Buffers buffers = {.count = 0};
    if (!PyArg_ParseTuple(args, "OO", &halves, &singles))
        return NULL;
    const uint16_t *from = memory_of(&buffers, halves, HALVES, &count, 0);
    uint32_t *to = from == NULL ? NULL : memory_of(&buffers, singles, FLOATS, &count, 1);
    if (to == NULL)
        return done(&buffers, 1);
    Py_BEGIN_ALLOW_THREADS
    widen_values(from, to, count);
    Py_END_ALLOW_THREADS
    return done(&buffers, 0);
}

/* Of what this was built, as setup.py says: kernel.py uses nothing that is older than it is itself. */
static PyObject *source(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyLong_FromUnsignedLong(SOURCE);
}

static PyMethodDef functions[] = {
    {"source", source, METH_NOARGS, NULL},
    {"figures", figures, METH_VARARGS, NULL},
    {"are_probabilities", are_probabilities, METH_VARARGS, NULL},
    {"add", add, METH_VARARGS, NULL},
    {"add_files", add_files, METH_VARARGS, NULL},
    {"add_units", add_units, METH_VARARGS, NULL},
    {"widen", widen, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kernel", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

/* Find numpy's inner loop of log for float32; raises ImportError where there is none. */
static int find_log(void) {
    int found = 0;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *type = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ufunc");
    PyObject *log = type == NULL ? NULL : PyObject_GetAttrString(numpy, "log");
    if (log != NULL && (PyObject *)Py_TYPE(log) == type) {
        const PyUFuncObject *ufunc = (const PyUFuncObject *)log;
        for (int i = 0; i < ufunc->ntypes && !found; i++) {
            if (ufunc->types[2 * i] == NPY_FLOAT && ufunc->types[2 * i + 1] == NPY_FLOAT) {
                log_loop = ufunc->functions[i];
                log_data = ufunc->data == NULL ? NULL : (void *)ufunc->data[i];
                found = log_loop != NULL;
            }
        }
    }
    if (!found && !PyErr_Occurred())
        PyErr_SetString(PyExc_ImportError, "numpy.log has no loop for float32");
    Py_XDECREF(log); /* numpy keeps it, and its loop, as long as the process lives */
    Py_XDECREF(type);
    Py_XDECREF(numpy);
    return found;
}

PyMODINIT_FUNC PyInit__kernel(void) { return find_log() ? PyModule_Create(&module) : NULL; }
