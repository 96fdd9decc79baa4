// What every op gives for good operands, and says for bad ones. A row is a formula over the parameters below.
#include "ir/build.h"
#include "parse/parse.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS                                                                                                              \
    "%a: f32[3, 4], %b: f32[?, 4], %c: f32[%h, %w], %v: f32[4], %q: f32[?], %z: f32[], %g: f32[] @host, %e: f32[0, 4], "    \
    "%d: f64[3, 4], %f: f16[3, 4], %bf: bf16[?, ?], %m: bool[3, 4], %i: i32[3, 4], %u: u64[3, 4], %u8: u8[3, 4], "          \
    "%x: c64[3, 4], %one: f32[1, 4], %n: i64, %k: i32, %s: f32, %t: f64, %y: bool, %p: i64[], %big: f32[1, 1, 1, 1, 1, 1, " \
    "1, 1], "                                                                                                               \
    "%cube: f32[2, 3, 5], %idx: i64[5], %idx2: i32[3, 2]"

typedef struct row {
    const char *formula; // "op operands, attributes"
    const char *want;    // types of the results; or "!" and words of the error
} row;

static const row elementwise[] = {
    {"add %a, %b", "f32[3, 4]"},
    {"add %b, %b", "f32[?, 4]"},
    {"add %c, %a", "f32[3, 4]"},
    {"add %c, %c", "f32[%h, %w]"},
    {"add %a, %v", "f32[3, 4]"},
    {"add %a, %z", "f32[3, 4]"},
    {"add %a, %g", "f32[3, 4]"},
    {"add %g, %g", "f32[] @host"},
    {"add %g, 1", "f32[] @host"},
    {"add %g, %s", "f32[] @host"},
    {"add %g, %z", "f32[]"},
    {"add %a, %one", "f32[3, 4]"},
    {"add %s, 1", "f32"},
    {"add %n, %k", "i64"},
    {"add %y, %y", "bool"},
    {"neg %i", "i32[3, 4]"},
    {"add %a, %d", "f64[3, 4]"},
    {"add %q, %b", "f32[?, 4]"},
    {"add %e, %one", "f32[0, 4]"},
    {"add %a, %e", "!add: %a: f32[3, 4] and %e: f32[0, 4] do not broadcast: axis 0 has extents 3 and 0"},
    {"add %cube, %a", "!axis 1 has extents 3 and 3|axis 2 has extents 5 and 4"},
    {"neg %m", "!neg: not supported for bool: it takes integer, float and complex operands, found %m: bool[3, 4]"},
    {"xor %a, %a", "!xor: not supported for f32: it takes bool and integer operands, found %a: f32[3, 4], %a: f32[3, 4]"},
    {"xor %a, 1", "!found %a: f32[3, 4], 1"},
    {"sub %m, %m", "!sub: not supported for bool"},
    {"max %x, %x", "!max: not supported for c64"},
    {"add %u, %i", "!%u: u64[3, 4] and %i: i32[3, 4] have no common integer dtype (u64 and i32): cast one of them"},
    {"add %u, %k", "u64[3, 4]"},
    {"add %u8, 300", "!the literal 300 does not fit u8"},
    {"add %u8, -1", "!the literal -1 does not fit u8"},
    {"eq %u8, 300", "bool[3, 4]"},
    {"lt %i, %u", "bool[3, 4]"},
    {"eq %x, 1", "bool[3, 4]"},
    {"lt %x, 1", "!lt: not supported for c64"},
    {"sqrt %i", "f32[3, 4]"},
    {"sqrt %n", "f64"},
    {"sqrt %f", "f16[3, 4]"},
    {"sqrt %y", "f64"},
    {"cbrt %x", "!cbrt: not supported for c64"},
    {"abs %x", "f32[3, 4]"},
    {"real %x", "f32[3, 4]"},
    {"imag %i", "i32[3, 4]"},
    {"angle %i", "f32[3, 4]"},
    {"isnan %x", "bool[3, 4]"},
    {"isposinf %x", "!isposinf: not supported"},
    {"lnot %x", "bool[3, 4]"},
    {"land %x, %i", "bool[3, 4]"},
    {"not %m", "bool[3, 4]"},
    {"not %a", "!not: not supported for f32"},
    {"cast %a, dtype=c128", "c128[3, 4]"},
    {"cast %a", "!cast: dtype= is missing"},
    {"cast 2.5, dtype=i32", "i32"},
    {"cast %g, dtype=f16", "f16[] @host"},
    {"bitcast %a, dtype=i32", "i32[3, 4]"},
    {"bitcast %a, dtype=f64", "!elements of f32 take 4 bytes, those of f64 8"},
    {"bitcast %x, dtype=f64", "!bitcast: not supported for c64"},
    {"bitcast %d, dtype=c64", "!bitcast: not supported for c64"},
    {"shl %i, %n", "i32[3, 4]"},
    {"shl 1, %k", "i64"},
    {"shl 1, %i", "i64[3, 4]"},
    {"shl %i, 1.5", "!shl: not supported for f64"},
    {"shr %a, 1", "!shr: not supported for f32"},
    {"shl %m, 1", "!shl: not supported for bool"},
    {"ldexp %i, %n", "f32[3, 4]"},
    {"ldexp %f, %d", "f64[3, 4]"},
    {"ldexp %f, %n", "f16[3, 4]"},
    {"complex %a, %t", "c64[3, 4]"},
    {"complex %f, 1", "c64[3, 4]"},
    {"complex %d, 1", "c128[3, 4]"},
    {"complex %x, 1", "!complex: not supported for c64"},
    {"select %m, %a, 1", "f32[3, 4]"},
    {"select %y, %n, 2", "i64"},
    {"select %m, -0.0, 0.0", "f32[3, 4]"},
    {"select true, %k, %n", "i64"},
    {"select %i, %a, %a", "!select: the condition must be bool, found %i: i32[3, 4]"},
    {"clamp %a, none, none", "f32[3, 4]"},
    {"clamp %a, 0, none", "f32[3, 4]"},
    {"clamp %i, 0, 1.5", "f32[3, 4]"},
    {"clamp %x, 0, 1", "!clamp: not supported for c64"},
    {"fma %a, %b, %v", "f32[3, 4]"},
    {"fma %y, %y, %y", "!fma: not supported for bool"},
    {"lerp %i, %i, 0.5", "f32[3, 4]"},
    {"lerp %n, %n, %n", "f64"},
    {"lerp %m, %m, %m", "!lerp: not supported for bool"},
    {"addcmul %a, %b, %c, 1", "f32[3, 4]"},
    {"pow %y, %y", "!pow: not supported for bool"},
    {"gcd %a, 1", "!gcd: not supported for f32"},
    {"gelu %a, approximate=tanh", "f32[3, 4]"},
    {"gelu %a, approximate=some", "!gelu: approximate= must be one of: none tanh; found some"},
    {"leaky_relu %f, slope=0.2", "f16[3, 4]"},
    {"elu %i, alpha=2", "f32[3, 4]"},
    {"elu %x", "!elu: not supported for c64"},
    {"add [1], %a", "!operand 1 must be a value, found the list [1]"},
    {"add none, %a", "!operand 1 must be a value, found none"},
};

static const row views[] = {
    {"reshape %a, [12]", "f32[12]"},
    {"reshape %a, [2, -1]", "f32[2, 6]"},
    {"reshape %a, [%n, -1]", "f32[?, ?]"},
    {"reshape %z, []", "f32[]"},
    {"reshape %z, [1, 1]", "f32[1, 1]"},
    {"reshape %c, [-1, %w]", "f32[%h, %w]"},
    {"reshape %b, [-1]", "f32[?]"},
    {"reshape %a, [5, -1]",
     "!reshape: %a: f32[3, 4] has 12 elements, which 5 does not divide: the extent -1 of [5, -1] has no value"},
    {"reshape %a, [5]", "!reshape: %a: f32[3, 4] has 12 elements, [5] has 5"},
    {"reshape %e, [0, -1]", "!-1 of [0, -1] is ambiguous beside an extent of 0"},
    {"reshape %a, [-1, -1]", "!more than one extent of [-1, -1] is -1"},
    {"reshape %a, [-2]", "!negative size: the extent -2 is -2"},
    {"reshape %a, 12", "!operand 2 must be a list of extents [...], found 12"},
    {"reshape %a, [1.5]", "!the extent must be an integer scalar, found 1.5"},
    {"reshape %a, [%s]", "!the extent must be an integer scalar, found %s: f32"},
    {"reshape %s, [1]", "!operand 1 must be a tensor, found the scalar %s: f32"},
    {"reshape 1, [1]", "!operand 1 must be a tensor, found the scalar 1"},
    {"reshape %a, [1, 1, 1, 1, 1, 1, 1, 3, 4]", "!9 extents are given"},
    {"permute %cube, [2, 0, 1]", "f32[5, 2, 3]"},
    {"permute %cube, [-1, 0, 1]", "f32[5, 2, 3]"},
    {"permute %c, [1, 0]", "f32[%w, %h]"},
    {"permute %cube, [0, 1]", "!2 axes are given for %cube: f32[2, 3, 5] of rank 3"},
    {"permute %cube, [0, 1, 1]", "!axis 1 stands in it twice"},
    {"permute %cube, [0, 1, 3]", "!axis 3 is outside the range -3..2"},
    {"permute %cube, [%n, 0, 1]", "!an axis must be an integer constant, found %n: i64"},
    {"transpose %cube, 0, -1", "f32[5, 3, 2]"},
    {"transpose %z, 0, 0", "f32[]"},
    {"transpose %a, 0, 2", "!axis 2 is outside"},
    {"broadcast %v, [3, 4], dims=[1]", "f32[3, 4]"},
    {"broadcast %a, [3, 4, 7], dims=[0, 1]", "f32[3, 4, 7]"},
    {"broadcast %a, [4, 4], dims=[0, 1]",
     "!axis 0 of %a: f32[3, 4] has extent 3, which cannot become the extent 4 of the result's axis 0"},
    {"broadcast %a, [4, 4]", "!dims= is missing"},
    {"broadcast %a, [3, 4], dims=[0]", "!dims= names 1 axes, %a: f32[3, 4] has 2"},
    {"broadcast %a, [3, 4], dims=[1, 1]", "!dims= names axis 1 twice"},
    {"broadcast %a, [4], dims=[0, 0]", "!names 2 axes, the result has 1"},
    {"expand %one, [7, 4]", "f32[7, 4]"},
    {"expand %one, [-1, -1]", "f32[1, 4]"},
    {"expand %v, [2, 3, 4]", "f32[2, 3, 4]"},
    {"expand %c, [%n, -1]", "f32[?, %w]"},
    {"expand %a, [2, 4]", "!axis 0 of %a: f32[3, 4] has extent 3, which cannot become the extent 2"},
    {"expand %a, [4]", "!1 extents are given for"},
    {"expand %v, [-1, 4]", "!negative size: the new extent -1 is -1"},
    {"expand %v, [-2]", "!negative size"},
    {"squeeze %one, axes=[0]", "f32[4]"},
    {"squeeze %b, axes=0", "f32[4]"},
    {"squeeze %a, axes=0", "!axis 0 of %a: f32[3, 4] has extent 3, only an extent of 1"},
    {"squeeze %a", "!squeeze: axes= is missing"},
    {"squeeze %one, axes=[0, 0]", "!axis 0 is named twice"},
    {"unsqueeze %v, axes=[0, -1]", "f32[1, 4, 1]"},
    {"unsqueeze %big, axes=0", "!make more than 8"},
    {"flip %a", "f32[3, 4]"},
    {"flip %c, axes=-1", "f32[%h, %w]"},
    {"flip %a, axes=2", "!axis 2 is outside"},
    {"slice %a, [1, 0], [3, -1], none", "f32[2, 3]"},
    {"slice %a, none, none, [2, 3]", "f32[2, 2]"},
    {"slice %q, [5], [100], none", "f32[?]"},
    {"slice %v, [2], [1], none", "f32[0]"},
    {"slice %a, [0, %n], none, none", "f32[3, ?]"},
    {"slice %c, [0, 0], none, none", "f32[%h, %w]"},
    {"slice %a, [0], none, none", "!1 starts are given for %a: f32[3, 4] of rank 2"},
    {"slice %v, none, none, [0]", "!the step 0 on axis 0 of %v: f32[4] is 0, at least 1"},
    {"slice %v, [1.5], none, none", "!the start must be an integer scalar"},
};

static const row reductions[] = {
    {"sum %a", "f32[]"},
    {"sum %a, axes=[1]", "f32[3]"},
    {"sum %a, axes=-1, keepdim=true", "f32[3, 1]"},
    {"sum %a, axes=[]", "f32[3, 4]"},
    {"sum %z", "f32[]"},
    {"sum %m", "i64[]"},
    {"sum %u8", "i64[]"},
    {"sum %u", "u64[]"},
    {"sum %f", "f16[]"},
    {"sum %i, dtype=i32", "i32[]"},
    {"sum %a, dtype=i8", "i8[]"},
    {"sum %x", "c64[]"},
    {"sum %c, axes=0", "f32[%w]"},
    {"sum %a, dtype=bool", "!dtype=bool is not supported"},
    {"sum %a, axes=[0, 2]", "!axis 2 is outside the range -2..1"},
    {"sum %a, axes=[0, -2]", "!axis 0 is named twice"},
    {"sum %a, axes=[%n]", "!found '%n', expected an integer or a list of integers for axes="},
    {"sum %s", "!operand 1 must be a tensor"},
    {"max %a", "f32[]"},
    {"max %m, axes=0", "bool[4]"},
    {"max %e", "!max: over no element: %e: f32[0, 4] has 0 elements"},
    {"max %e, axes=1", "f32[0]"},
    {"max %x", "!max: not supported for c64, which has no order: found %x: c64[3, 4]"},
    {"any %x", "bool[]"},
    {"all %a, axes=[0]", "bool[4]"},
    {"argmax %a", "i64[]"},
    {"argmax %a, axis=0", "i64[4]"},
    {"argmax %z", "i64[]"},
    {"argmax %e, axis=0", "!argmax: over no element"},
    {"argmax %x", "!no order"},
    {"argmin %a, axis=1, keepdim=true", "i64[3, 1]"},
    {"mean %i", "f32[]"},
    {"mean %f, axes=0", "f16[4]"},
    {"mean %x", "c64[]"},
    {"mean %a, dtype=f64", "f64[]"},
    {"mean %a, dtype=i32", "!dtype=i32 is not supported"},
    {"var %x", "f32[]"},
    {"std %d, correction=0.5", "f64[]"},
    {"var %a, correction=%n", "!number"},
    {"norm %i, ord=inf", "f32[]"},
    {"norm %a, ord=3", "!norm: ord= must be 1, 2 or inf"},
    {"norm %x", "!norm: not supported for c64"},
    {"logsumexp %f, axes=1", "f16[3]"},
    {"count_nonzero %x", "i64[]"},
    {"var_mean %a, axes=0", "f32[4], f32[4]"},
    {"size %a, 0", "i64"},
    {"size %c, -1", "i64"},
    {"size %a, 2", "!axis 2 is outside"},
    {"size %z, 0", "!%z: f32[] has rank 0, there is no axis"},
    {"stride %a, 0", "i64"},
    {"numel %g", "i64"},
    {"numel %s", "!operand 1 must be a tensor"},
    {"item %z", "f32"},
    {"item %a", "!%a: f32[3, 4] has 12 elements, 1 is needed"},
    {"item %g", "f32"},
    {"scalar_tensor %s", "f32[]"},
    {"scalar_tensor 1.5", "f64[]"},
    {"scalar_tensor %z", "!operand 1 must be a scalar, found %z: f32[]"},
};

static const row whole[] = {
    {"softmax %i, axis=0", "f32[3, 4]"},
    {"softmax %a", "!softmax: axis= is missing"},
    {"softmax %x, axis=0", "!softmax: not supported for c64"},
    {"log_softmax %f, axis=-1", "f16[3, 4]"},
    {"layer_norm %a, %v, none, 1e-5", "f32[3, 4]"},
    {"layer_norm %f, %v, %v, %t, axes=[0, 1]", "f16[3, 4]"},
    {"layer_norm %a, %q, none, %z", "!eps must be a real scalar, found %z: f32[]"},
    {"layer_norm %a, %idx, none, 1", "!%a: f32[3, 4] and %idx: i64[5] do not broadcast: axis 1 has extents 4 and 5"},
    {"rms_norm %bf, none, 1e-6", "bf16[?, ?]"},
    {"rms_norm %a, %s, 1", "!operand 2 must be a tensor, found the scalar %s: f32"},
    {"batch_norm %a, %v, %v, none, %v, 1e-5", "f32[3, 4]"},
    {"batch_norm %v, %v, %v, none, none, 1", "!%v: f32[4] has rank 1, at least 2 is needed"},
    {"batch_norm %a, %idx, %v, none, none, 1", "!the mean %idx: i64[5] has extent 5, axis 1 of %a: f32[3, 4] has extent 4"},
    {"batch_norm %a, %a, %v, none, none, 1", "!the mean must have rank 1"},
    {"cross_entropy %b, %idx", "f32[]"},
    {"cross_entropy %a, %idx", "!%a: f32[3, 4] has 3 rows, %idx: i64[5] has 5 labels"},
    {"cross_entropy %a, %v", "!indices are i32 or i64, found %v: f32[4]"},
    {"dropout %f, 0.5, 1, %n", "f16[3, 4], bool[3, 4]"},
    {"dropout %a, %z, 1, 1", "!p must be a scalar, found %z: f32[]"},
    {"cumsum %m, axis=0", "i64[3, 4]"},
    {"cumsum %f, axis=0", "f16[3, 4]"},
    {"cumsum %z, axis=0", "f32[]"},
    {"cumsum %a", "!axis= is missing"},
    {"cummax %i, axis=1", "i32[3, 4], i64[3, 4]"},
    {"cummax %x, axis=0", "!no order"},
    {"logcumsumexp %i, axis=0", "f32[3, 4]"},
    {"sort %a", "f32[3, 4], i64[3, 4]"},
    {"sort %x", "!no order"},
    {"argsort %z", "i64[]"},
    {"topk %a, 2", "f32[3, 2], i64[3, 2]"},
    {"topk %a, %n, axis=0", "f32[%n, 4], i64[%n, 4]"},
    {"topk %a, 5", "!topk: k is 5, the extent of axis 1 of %a: f32[3, 4] is 4"},
    {"topk %a, -1", "!k is -1"},
    {"scatter %a, %idx2, 1, axis=1", "f32[3, 4]"},
    {"scatter %a, %idx2, %i, axis=1, mode=add", "f32[3, 4]"},
    {"scatter %a, %idx2, %z, axis=1", "f32[3, 4]"},
    {"scatter %x, %idx2, 1, axis=1, mode=max", "!mode=max is not supported for c64"},
    {"scatter %a, %idx2, 1, axis=1, mode=or", "!mode= must be one of"},
    {"scatter %a, %idx, 1, axis=0", "!%a: f32[3, 4] has rank 2, %idx: i64[5] has 1"},
    {"scatter %i, %idx2, 1.5, axis=1", "!the literal 1.5 does not fit i32"},
    {"matmul %a, %v", "f32[3]"},
    {"matmul %v, %v", "f32[]"},
    {"matmul %a, %d", "!the inner extents of %a: f32[3, 4] and %d: f64[3, 4] differ: 4 and 3"},
    {"matmul %i, %v", "f32[3]"},
    {"matmul %z, %a", "!%z: f32[] has rank 0"},
    {"linear %a, %b, none", "f32[3, ?]"},
    {"linear %f, %f, %idx", "!do not broadcast"},
    {"linear %f, %f, none", "f16[3, 3]"},
};

static const row indexed[] = {
    {"pad %a, [1, 0], [2, -1], 0", "f32[6, 3]"},
    {"pad %i, [0, 0], [0, 0], 1.5", "!the literal 1.5 does not fit i32"},
    {"pad %v, [-3], [1], 0", "f32[2]"},
    {"pad %v, [-5], [9], 0", "!axis 0 of %v: f32[4] has extent 4: padding by -5 and 9 takes away more than there is"},
    {"pad %v, [1, 2], [1], 0", "!2 paddings are given for %v: f32[4] of rank 1"},
    {"pad %v, [%n], [0], %s", "f32[?]"},
    {"pad %v, [0], [0], %z", "!the padding value must be a scalar, found %z: f32[]"},
    {"pad %v, [4611686018427387904], [0], 0", "!is too large"},
    {"cat %a, %b", "f32[?, 4]"},
    {"cat %a, %i, %f, axis=1", "f32[3, 12]"},
    {"cat %a", "f32[3, 4]"},
    {"cat %a, %v", "!%a: f32[3, 4] has rank 2, %v: f32[4] has 1"},
    {"cat %z, %z", "!%z: f32[] has rank 0"},
    {"cat %a, %e, axis=1", "!%a: f32[3, 4] and %e: f32[0, 4]: axis 0 has extents 3 and 0"},
    {"cat %u, %i", "!have no common integer dtype"},
    {"stack %a, %d, axis=-1", "f64[3, 4, 2]"},
    {"stack %z", "f32[1]"},
    {"stack %a, %cube", "!%a: f32[3, 4] has rank 2, %cube: f32[2, 3, 5] has 3"},
    {"stack %big, %big", "!more than 8 axes"},
    {"repeat %v, [2, 3]", "f32[2, 12]"},
    {"repeat %a, [2]", "!1 counts are given for %a: f32[3, 4] of rank 2"},
    {"repeat %v, [-1]", "!negative size: the count -1 is -1"},
    {"roll %a, [1, %n], axes=[0, 1]", "f32[3, 4]"},
    {"roll %a, [1], axes=[0, 1]", "!1 amounts are given for 2 axes"},
    {"roll %a, [1]", "!axes= is missing"},
    {"triu %a, diagonal=%n", "f32[3, 4]"},
    {"tril %v", "!%v: f32[4] has rank 1"},
    {"take %a, %idx, axis=1", "f32[3, 5]"},
    {"take %a, %idx2, axis=0", "f32[3, 2, 4]"},
    {"take %a, %v, axis=0", "!indices are i32 or i64, found %v: f32[4]"},
    {"take %z, %idx, axis=0", "!%z: f32[] has rank 0"},
    {"take %a, %idx", "!axis= is missing"},
    {"gather %a, %idx2, axis=1", "f32[3, 2]"},
    {"gather %one, %idx2, axis=1", "!axis 0 of %idx2: i32[3, 2] has extent 3, that of %one: f32[1, 4] only 1"},
    {"index %a, %n, axis=0", "f32[4]"},
    {"index %a, 0, axis=1", "f32[3]"},
    {"index %a, %p, axis=0", "!the index must be an i32 or i64 scalar, found %p: i64[]"},
    {"index %a, 1.5, axis=0", "!found 1.5"},
    {"onehot %idx, 7", "i64[5, 7]"},
    {"onehot %idx, %n", "i64[5, %n]"},
    {"onehot %idx, -1", "!negative size"},
    {"full [2, %n], 1", "i64[2, %n]"},
    {"full [], 1.5", "f32[]"},
    {"full [2], %k", "i32[2]"},
    {"full [2], %t, dtype=u8", "u8[2]"},
    {"full [2], 1.5, dtype=i8", "!the literal 1.5 does not fit i8"},
    {"full [-1], 0", "!negative size: the extent -1 is -1"},
    {"full [2], %z", "!operand 2 must be a scalar, found %z: f32[]"},
    {"full 3, 1", "!operand 1 must be a list of extents"},
    {"iota %n, 0, 1", "i64[%n]"},
    {"iota 3, 0, 0.5", "f32[3]"},
    {"iota 3, %k, 1", "i32[3]"},
    {"iota 3, 0, 1, dtype=bool", "!dtype=bool is not supported"},
    {"eye 2, 3", "f32[2, 3]"},
    {"eye 2, 2, dtype=c64", "!dtype=c64 is not supported"},
    {"tensor [[1, 2], [3, 4]]", "i64[2, 2]"},
    {"tensor [1, 2.5]", "f32[2]"},
    {"tensor []", "f32[0]"},
    {"tensor [true]", "bool[1]"},
    {"tensor 5.0", "f32[]"},
    {"tensor [300], dtype=u8", "!the literal 300 does not fit u8"},
    {"tensor [[1], [2, 3]]", "!different lengths or depths"},
    {"tensor [1, [2]]", "!different lengths"},
    {"tensor [%n]", "!only literals may stand in a constant, found %n: i64"},
    {"uniform [2, 3], 0, 1, %n, 0", "f32[2, 3]"},
    {"normal [2], 0, %t, 1, 0, dtype=f16", "f16[2]"},
    {"uniform [2], 0, 1, 1.5, 0", "!the seed must be an integer scalar, found 1.5"},
    {"uniform [2], 0, 1, 1, 0, dtype=i32", "!dtype=i32 is not supported"},
};

typedef struct table {
    const row *rows;
    size_t n;
} table;
#define TABLE(x) {x, sizeof(x) / sizeof *(x)}
static const table tables[] = {TABLE(elementwise), TABLE(views), TABLE(reductions), TABLE(whole), TABLE(indexed)};

// Every part of `want` between bars stands in `text`, or, for alternatives, one of them.
static bool has_one(const char *text, const char *want) {
    char part[256];
    while (*want) {
        size_t n = strcspn(want, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, want);
        if (strstr(text, part)) return true;
        want += n + (want[n] == '|');
    }
    return false;
}

static void check_row(const row *r) {
    char text[2048], found[256] = "";
    static const char *const pairs[] = {"var_mean ", "dropout ", "cummax ", "cummin ", "sort ", "topk "};
    bool two = false;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) two |= !strncmp(r->formula, pairs[i], strlen(pairs[i]));
    snprintf(text, sizeof text, "fusion @f(%s) {\n  %%r%s = %s\n  return %%r\n}\n", PARAMS, two ? ", %r2" : "", r->formula);
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &n);
    if (r->want[0] == '!') {
        ck_assert_msg(s != NULL, "%s is taken", r->formula);
        ck_assert_int_eq(lf_status_code(s), LF_INVALID_PROGRAM);
        ck_assert_msg(has_one(lf_status_message(s), r->want + 1), "%s\nsays %s\nwanted %s", r->formula, lf_status_message(s),
                      r->want + 1);
        ck_assert_uint_eq(lf_status_place(s).line, 2);
        lf_status_destroy(s);
        return;
    }
    ck_assert_msg(!s, "%s\nsays %s", r->formula, lf_status_message(s));
    lf_graph *g = graphs[0];
    lf_status verified = lf_graph_verify(g);
    ck_assert_msg(!verified, "%s\n%s", r->formula, lf_status_message(verified));
    const lf_value *v = g->outputs[0].written;
    for (uint16_t i = 0; i < v->def->n_results; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? ", " : "",
                 lf_type_text(&g->arena, &v->def->results[i].type));
    ck_assert_msg(!strcmp(found, r->want), "%s\ngives %s, wanted %s", r->formula, found, r->want);
    lf_parse_release(&lf_system_allocator, graphs, n);
}

START_TEST(rows_of_table) {
    for (size_t i = 0; i < tables[_i].n; i++) check_row(&tables[_i].rows[i]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rules");
    TCase *t = tcase_create("rules");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, rows_of_table, 0, sizeof tables / sizeof *tables);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
