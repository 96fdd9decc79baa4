// All ops that are not elementwise, and mixtures of them, on the device against the interpreter: templates x dtypes x layouts x
// extents {0, 1, 7, 1025, 8193}, equal bits. See oracle.h for what the names of parameters and extents mean.
#include "test/support/api/oracle.h"

static const int64_t extents[] = {0, 1, 7, 1025, 8193};
static const int64_t modest[] = {0, 1, 7, 130};

// Of the other dtypes fewer layouts: LLVM takes most of the time of these tests.
static bool is_main(lfuser_dtype d) {
    return d == LFUSER_BOOL || d == LFUSER_I32 || d == LFUSER_I64 || (d >= LFUSER_F16 && d <= LFUSER_C64);
}

// The templates of one group, each on every dtype that it takes.
static void check_all(const char *const *templates, size_t n, lfuser_dtype d, const int64_t *sizes, size_t n_sizes,
                      double slack) {
    if (SLOW_BUILD && d != LFUSER_I32 && d != LFUSER_F16 && d != LFUSER_F32 && d != LFUSER_C64) return;
    int checked = 0;
    for (size_t i = 0; i < n; i++) {
        test_program p;
        if (!program_open(&p, templates[i], d)) continue;
        p.slack = slack;
        p.brief = SLOW_BUILD || !is_main(d);
        check_layouts(&p, sizes, n_sizes);
        program_close(&p);
        checked++;
    }
    ck_assert_msg(checked > 0, "no template takes %s", lfuser_dtype_name(d));
}
#define CHECK_CLOSE(templates, sizes, slack)                                                                                \
    check_all(templates, sizeof templates / sizeof *templates, (lfuser_dtype)_i, sizes, sizeof sizes / sizeof *sizes, slack)
#define CHECK_ALL(templates, sizes) CHECK_CLOSE(templates, sizes, 0)

// ---- reductions --------------------------------------------------------------------------------------------------------------------

static const char *const reductions[] = {
    // Rows: the reduced axis is the innermost one.
    "(%p: $D[%m, ?]) { %a = sum %p, axes=[1] %b = prod %p, axes=[1], keepdim=true return %a, %b }",
    "(%x: $D[%m, ?]) { %a = sum %x, axes=[1] %b = any %x, axes=[1] %c = all %x, axes=[-1] %d = count_nonzero %x, axes=[1] "
    "return %a, %b, %c, %d }",
    "(%x: $D[%m, ?]) { %a = sum %x, axes=[1], dtype=f64 %b = sum %x, axes=[1], dtype=i32 %c = prod %x, axes=[1], dtype=f32 "
    "return %a, %b, %c }",
    "(%p: $D[%m, ?]) { %a = mean %p, axes=[1] %v, %m = var_mean %p, axes=[1], correction=0 %s = std %p, axes=[1] return %a, "
    "%v, %m, %s }",
    "(%p: $D[%m, ?]) { %a = norm %p, axes=[1] %b = norm %p, axes=[1], ord=1 %c = norm %p, axes=[1], ord=inf return %a, %b, "
    "%c }",
    "(%p: $D[%m, ?]) { %a = logsumexp %p, axes=[1], keepdim=true return %a }",
    // Columns, all axes, none.
    "(%p: $D[?, %m]) { %a = sum %p, axes=[0] %b = sum %p %c = sum %p, axes=[] return %a, %b, %c }",
    "(%p: $D[?, %m]) { %a = mean %p, axes=[0] %b = var %p %c = prod %p, axes=[0] return %a, %b, %c }",
    "(%x: $D[?, %m]) { %b = any %x %c = all %x, axes=[0] %d = count_nonzero %x return %b, %c, %d }",
    // The middle, both ends, two neighbours.
    "(%p: $D[%m, ?, %k]) { %a = sum %p, axes=[1] %b = sum %p, axes=[0, 2] %c = sum %p, axes=[0, 1], keepdim=true return %a, "
    "%b, %c }",
    // With work before and after.
    "(%p: $D[%m, ?], %q: $D[?]) { %e = mul %p, %q %s = sum %e, axes=[1], keepdim=true %y = add %e, %s %z = sum %y, axes=[1] "
    "return %y, %s, %z }",
    "(%p: $D[?], %q: $D[?]) { %e = mul %p, %q %s = sum %e %v = item %s %y = add %p, %v return %y, %v }",
};
static const char *const extrema[] = {
    "(%x: $D[%m, %k], %y: $D[?, %m]) { %a = min %x, axes=[1] %b = max %x, axes=[0], keepdim=true %c = max %x %d = neg %y "
    "return %a, %b, %c, %d }",
    "(%x: $D[%m, %k], %y: $D[?]) { %a = argmin %x, axis=1 %b = argmax %x, axis=0, keepdim=true %c = argmax %x %d = argmin "
    "%x return %a, %b, %c, %d, %y }",
    "(%x: $D[?, %m]) { %a = min %x, axes=[1] %b = max %x, axes=[1] %c = argmax %x, axis=1 %d = argmin %x, axis=1, "
    "keepdim=true return %a, %b, %c, %d }",
    "(%x: $D[%m, ?]) { %a = max %x, axes=[1] %b = min %x, axes=[1] return %a, %b }",
    "(%x: $D[%m, ?]) { %c = argmax %x, axis=1 %d = argmin %x, axis=1 return %c, %d }",
};

START_TEST(reduce) { CHECK_ALL(reductions, extents); }
END_TEST
START_TEST(extreme) { CHECK_ALL(extrema, extents); }
END_TEST

// ---- composites --------------------------------------------------------------------------------------------------------------------

static const char *const composites[] = {
    "(%p: $D[%m, ?]) { %a = softmax %p, axis=1 return %a }",
    "(%p: $D[?, %m]) { %a = softmax %p, axis=0 %b = log_softmax %p, axis=1 return %a, %b }",
    "(%x: $D[%m, ?]) { %a = log_softmax %x, axis=-1 return %a }",
    "(%p: $D[%m, ?], %w: $D[?], %b: $D[?]) { %a = layer_norm %p, %w, %b, 1e-5 return %a }",
    "(%p: $D[?, %m, %k]) { %a = layer_norm %p, none, none, 1e-5, axes=[1, 2] %b = rms_norm %p, none, 1e-6 return %a, %b }",
    "(%p: $D[%m, ?], %w: $D[?]) { %a = rms_norm %p, %w, 1e-5 return %a }",
    "(%p: $D[?, %m, %k], %q: $D[%m], %s: $D[%m], %w: $D[%m], %b: $D[%m]) { %a = batch_norm %p, %q, %s, %w, %b, 1e-5 %c = "
    "batch_norm %p, %q, %s, none, none, 0.001 return %a, %c }",
    "(%p: $D[?, %m], %i: i64[?]) { %j = cast %i, dtype=i64 %l = mod %j, 3 %a = cross_entropy %p, %l return %a }",
    "(%p: $D[%m, ?], %s: i64) { %y, %k = dropout %p, 0.3, 1234567, %s return %y, %k }",
};
START_TEST(composite) { CHECK_ALL(composites, extents); }
END_TEST

// ---- shape -------------------------------------------------------------------------------------------------------------------------

static const char *const shapes[] = {
    "(%x: $D[?, %m], %y: $D[%m, ?]) { %r = reshape %x, [3, -1] %a = select true, %r, %y return %r, %a }",
    "(%x: $D[%m, ?, %k]) { %n = size %x, 1 %r = reshape %x, [%n, 5, 3] %p = permute %r, [2, 0, 1] %q = reshape %p, [-1] "
    "return %r, %p, %q }",
    "(%x: $D[%m, ?, %k]) { %a = permute %x, [2, 0, -2] %b = transpose %x, 0, -1 %c = flip %x %d = flip %b, axes=[1] return "
    "%a, %b, %c, %d }",
    "(%x: $D[?], %y: $D[%m, ?]) { %n = size %x, 0 %a = expand %x, [2, 3, -1] %b = broadcast %x, [%n, 4], dims=[0] %e = eq "
    "%a, %y return %a, %b, %e }",
    "(%x: $D[?, 1, %m]) { %a = squeeze %x, axes=[1] %b = unsqueeze %a, axes=[0, -1] %c = eq %x, %b return %a, %b, %c }",
    "(%x: $D[?, %k]) { %a = slice %x, [1, -3], [none, none], [2, 1] %b = slice %x, [-5, 0], [100000, -1], none %c = slice "
    "%x, [3, 4], [2, none], none return %a, %b, %c }",
    "(%x: $D[?, %m], %v: $D) { %a = pad %x, [2, 0], [1, 3], %v %b = pad %x, [0, -1], [0, -1], 0 return %a, %b }",
    "(%x: $D[?, %m], %y: $D[%k, %m]) { %a = cat %x, %y, %x, axis=0 %b = stack %x, %x %c = stack %x, %x, axis=2 return %a, "
    "%b, %c }",
    "(%x: $D[%m, ?], %s: i64) { %a = repeat %x, [2, 1, 2] %b = roll %x, [%s, -2], axes=[0, 1] return %a, %b }",
    "(%x: $D[%m, ?], %s: i64) { %a = triu %x %b = tril %x, diagonal=1 %c = triu %x, diagonal=%s return %a, %b, %c }",
    "(%x: $D[?, 2, 1, 2, 1, 2, 1, %m]) { %a = permute %x, [7, 6, 5, 4, 3, 2, 1, 0] %b = flip %a, axes=[0, 7] return %a, %b "
    "}",
    "(%x: $D[?]) { %n = size %x, 0 %h = floordiv %n, 2 %a = slice %x, [%h], [none], none %b = slice %x, [0], [%h], none %c "
    "= cat %a, %b return %c, %h }",
};
START_TEST(shape) { CHECK_ALL(shapes, extents); }
END_TEST

// ---- indexing and creation -----------------------------------------------------------------------------------------------------------

static const char *const indexing[] = {
    "(%x: $D[%m, %k], %i: i64[?]) { %a = take %x, %i, axis=0 return %a }",
    "(%x: $D[%k, %m], %i: i32[?, %k]) { %a = take %x, %i, axis=1 return %a }",
    "(%x: $D[%m, %k], %i: i64[?, 5]) { %a = gather %x, %i, axis=0 return %a }",
    "(%x: $D[?, %m], %s: i64) { %a = index %x, %s, axis=1 %b = index %x, -1, axis=1 %e = eq %a, %b return %a, %b, %e }",
    "(%x: $D[?, %m], %i: i64[%m]) { %a = take %x, %i, axis=1 %b = sum %a, axes=[0] return %a, %b }",
    "(%x: $D[%m, ?], %i: i64[%m, ?]) { %a = gather %x, %i, axis=0 %b = eq %a, %x return %a, %b }",
    // Out of range more often than not: zeros, and an index error.
    "(%x: $D[%m, %k], %j: i32[?]) { %a = take %x, %j, axis=0 return %a }",
    "(%x: $D[%m, ?], %j: i64[%m, ?]) { %a = gather %x, %j, axis=0 return %a }",
    "(%x: $D[?], %s: i64) { %a = full [%s, 3], 2, dtype=$D %y = index %a, %s, axis=0 return %y, %x }",
};
START_TEST(indices) { CHECK_ALL(indexing, extents); }
END_TEST

static const char *const creation[] = {
    "(%x: $D[?], %v: $D) { %n = size %x, 0 %a = full [%n, 2], %v %b = full [3, %n], 1, dtype=$D %c = eq %x, %v return %a, "
    "%b, %c }",
    "(%x: $D[?]) { %n = size %x, 0 %a = iota %n, 3, -2, dtype=$D %c = eq %x, %a return %a, %c }",
    "(%x: $D[?]) { %n = size %x, 0 %m = min %n, 130 %a = eye %m, 5, dtype=$D %b = eye %m, %m, dtype=$D return %a, %b, %x }",
    "(%x: $D[?, 3]) { %a = tensor [[1, 0, 1], [0, 0, 1]], dtype=$D %b = index %a, 1, axis=0 %c = eq %x, %b return %a, %c }",
    "(%x: $D[?], %s: i64) { %n = size %x, 0 %a = uniform [%n, 3], -1.0, 2.0, 12345678901, %s, dtype=$D %b = normal [3, %n], "
    "0.5, 2.0, %s, 7, dtype=$D return %a, %b, %x }",
    "(%i: i64[?], %x: $D[?]) { %j = add %i, 3 %a = onehot %j, 6 return %a, %x }",
};
START_TEST(create) { CHECK_ALL(creation, extents); }
END_TEST

// ---- mixtures ------------------------------------------------------------------------------------------------------------------------

static const char *const mixtures[] = {
    // A chain of kernels, intermediate results of many shapes, one value used by all.
    "(%p: $D[%m, ?], %q: $D[?]) { %a = add %p, %q %s = sum %a, axes=[0] %b = mul %s, %q %t = sum %b %c = sub %p, %t %d = "
    "permute %c, [1, 0] %e = sum %d, axes=[1] return %a, %s, %t, %d, %e }",
    // One value twice, a parameter, a view of a parameter, scalars.
    "(%x: $D[?, %m], %v: $D) { %y = permute %x, [1, 0] %z = add %x, %v return %z, %z, %x, %y, %v, 7 }",
    // Empty intermediate results.
    "(%p: $D[?, %m]) { %a = slice %p, [0, 0], [0, none], none %b = sum %a, axes=[0] %c = cat %a, %p, axis=0 %d = add %c, %b "
    "return %b, %d }",
    // Half dtypes mixed with others, casts in the middle.
    "(%p: $D[?, %m], %q: f32[%m], %r: i16[?, 1]) { %a = mul %p, %q %b = add %a, %r %c = cast %b, dtype=f16 %d = add %c, %c "
    "return %a, %b, %d }",
};
START_TEST(mixture) { CHECK_ALL(mixtures, extents); }
END_TEST

// ---- scans, order, scatter, contractions -----------------------------------------------------------------------------------------------

// The bits of float scans and contractions depend on the target, so here their arithmetic is exact: eighths, and 1 and -1.
static const char *const scans[] = {
    "(%s: $D[%m, ?]) { %a = cumsum %s, axis=1 return %a }",
    "(%s: $D[?, %m]) { %a = cumsum %s, axis=0 return %a }",
    "(%b: bool[%m, ?], %x: $D[?]) { %t = select %b, 1, -1 %u = cast %t, dtype=$D %a = cumprod %u, axis=1 return %a, %x }",
    "(%x: $D[%m, ?]) { %a, %i = cummax %x, axis=1 %b, %j = cummin %x, axis=-1 return %a, %i, %b, %j }",
};
static const char *const close_scans[] = {
    "(%p: $D[?, %m]) { %a = logcumsumexp %p, axis=0 return %a }",
    "(%p: $D[%m, ?]) { %e = abs %p %a = cumsum %e, axis=1 return %a }",
    "(%p: $D[%m, ?]) { %e = mul %p, 0.01 %f = add %e, 1 %a = cumprod %f, axis=1 return %a }",
};
static const char *const orders[] = {
    "(%x: $D[%m, ?]) { %a, %i = sort %x return %a, %i }",
    "(%x: $D[?, %m]) { %a, %i = sort %x, axis=0, descending=true %j = argsort %x return %a, %i, %j }",
    "(%x: $D[%m, %k], %y: $D[?]) { %a, %i = topk %x, 2 %b, %j = topk %x, 3, axis=0, largest=false return %a, %i, %b, %j, %y "
    "}",
    "(%x: $D[?, %m]) { %n = size %x, 0 %k = min %n, 4 %a, %i = topk %x, %k, axis=0 return %a, %i }",
};
static const char *const scatters[] = {
    "(%x: $D[%m, %k], %i: i64[%m, 5], %p: $D[%m, 5], %y: $D[?]) { %a = scatter %x, %i, %p, axis=0 return %a, %y }",
    "(%p: $D[%m, ?], %i: i64[%m, ?], %q: $D[%m, ?]) { %a = scatter %p, %i, %q, axis=0, mode=add return %a }",
    "(%p: $D[%m], %i: i32[?], %q: $D[?]) { %a = scatter %p, %i, %q, axis=0, mode=mul %b = scatter %p, %i, 1, axis=0 return "
    "%a, %b }",
    "(%x: $D[%m], %i: i64[?], %y: $D[?]) { %a = scatter %x, %i, %y, axis=0, mode=min %b = scatter %x, %i, %y, axis=0, "
    "mode=max return %a, %b }",
    "(%x: $D[%m], %j: i64[?], %y: $D[?]) { %a = scatter %x, %j, %y, axis=0 return %a }",
};
static const char *const contractions[] = {
    "(%s: $D[?, %k], %s2: $D[%k, %m]) { %a = matmul %s, %s2 return %a }",
    "(%s: $D[%m, ?], %s2: $D[?, %k]) { %a = matmul %s, %s2 return %a }",
    "(%s: $D[%m, ?, %k], %s2: $D[%k]) { %a = matmul %s, %s2 return %a }",
    "(%s: $D[%k], %s2: $D[%k]) { %a = matmul %s, %s2 %b = add %a, %a return %a, %b }",
    "(%s: $D[?, %k], %s3: $D[%m, %k], %b: $D[%m]) { %a = linear %s, %s3, %b %c = linear %s, %s3, none return %a, %c }",
    "(%p: $D[?, %k], %q: $D[%k, %m]) { %a = matmul %p, %q return %a }",
};
static const char *const deep_contractions[] = {
    "(%x: $D[%m, ?], %y: $D[?, %k]) { %a = matmul %x, %y return %a }",
    "(%p: $D[?], %q: $D[?]) { %a = matmul %p, %q return %a }",
};
static double slack_of(int d) {
    return d == LFUSER_BF16 ? 0x1p-7 : d == LFUSER_F16 ? 0x1p-10 : d == LFUSER_F32 ? 0x1p-14 : 0x1p-43;
}

START_TEST(scan) { CHECK_ALL(scans, extents); }
END_TEST
START_TEST(close_scan) { CHECK_CLOSE(close_scans, extents, slack_of(_i)); }
END_TEST
START_TEST(order) { CHECK_ALL(orders, extents); }
END_TEST
START_TEST(scatter) { CHECK_ALL(scatters, modest); }
END_TEST
START_TEST(contraction) { CHECK_ALL(contractions, modest); }
END_TEST
START_TEST(deep_contraction) { CHECK_ALL(deep_contractions, extents); }
END_TEST

#define EVERY(test, from, to) tcase_add_loop_test(t, test, from, (to) + 1)

static Suite *make(void) {
    Suite *suite = suite_create("api programs");
    TCase *t = device_tcase(suite, "reductions", 200);
    EVERY(reduce, LFUSER_BOOL, LFUSER_C128);
    EVERY(extreme, LFUSER_BOOL, LFUSER_F64);
    t = device_tcase(suite, "composites", 200);
    EVERY(composite, LFUSER_F16, LFUSER_F64);
    t = device_tcase(suite, "shapes", 200);
    EVERY(shape, LFUSER_BOOL, LFUSER_C128);
    t = device_tcase(suite, "indexing", 200);
    EVERY(indices, LFUSER_BOOL, LFUSER_C128);
    t = device_tcase(suite, "creation", 200);
    EVERY(create, LFUSER_BOOL, LFUSER_C128);
    t = device_tcase(suite, "mixtures", 200);
    EVERY(mixture, LFUSER_BOOL, LFUSER_C128);
    t = device_tcase(suite, "scans", 200);
    EVERY(scan, LFUSER_BOOL, LFUSER_C128);
    EVERY(close_scan, LFUSER_F16, LFUSER_F64);
    t = device_tcase(suite, "order", 200);
    EVERY(order, LFUSER_BOOL, LFUSER_F64);
    t = device_tcase(suite, "scatter", 200);
    EVERY(scatter, LFUSER_BOOL, LFUSER_C128);
    t = device_tcase(suite, "contractions", 200);
    EVERY(contraction, LFUSER_I8, LFUSER_C128);
    EVERY(deep_contraction, LFUSER_F16, LFUSER_C128);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
