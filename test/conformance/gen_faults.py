#!/usr/bin/env python3
"""Writes data/faults.jsonl: faults that users of other fusion and array compilers met, each as small programs with the right answer.

gen_faults.py [--check]      --check: exit 1 when the file on disk is not what this program writes

An id is fault.LINE[.variant]: LINE is the number of the fault in the list this project keeps (docs/accuracy.md says how the list
is covered); `what` says in a few words what went wrong elsewhere. Expectations are written by hand from the language's rules; only
random numbers are computed here (Philox, checked against its published answers). What a case cannot express (memory beyond 2 GiB,
launches and compiles counted, streams, threads, messages with their code) is in test/unit/test_faults*.c.
"""
import base64
import json
import math
import os
import re
import struct
import sys

INT = dict(i8=1, i16=2, i32=4, i64=8, u8=1, u16=2, u32=4, u64=8)
FLOAT = dict(f16="<e", f32="<f", f64="<d")
PART = dict(c64="f32", c128="f64")
NAN, INF = math.nan, math.inf
CASES = []


def element(dtype, v):
    """One element as bytes; floats are rounded to nearest even, integers must fit."""
    if dtype in PART:
        v = complex(*v) if isinstance(v, tuple) else complex(v)
        return element(PART[dtype], v.real) + element(PART[dtype], v.imag)
    if dtype == "bool": return bytes([v])
    if dtype in INT: return int(v).to_bytes(INT[dtype], "little", signed=dtype[0] == "i")
    if v != v: return {"f16": b"\0\x7e", "bf16": b"\xc0\x7f", "f32": b"\0\0\xc0\x7f", "f64": b"\0\0\0\0\0\0\xf8\x7f"}[dtype]
    if dtype != "bf16": return struct.pack(FLOAT[dtype], v)
    bits = struct.unpack("<I", struct.pack("<f", v))[0]
    return struct.pack("<H", bits + 0x7FFF + (bits >> 16 & 1) >> 16)


def T(type_, *values, strides=None, offset=None):
    """A tensor, "f32[2,3]" and its elements in row-major order (of the storage, with strides or an offset); one value: all."""
    dtype, dims = re.fullmatch(r"(\w+)\[(.*)\]", type_).groups()
    shape = [int(d) for d in dims.split(",")] if dims else []
    if len(values) == 1 and strides is None and offset is None: values *= math.prod(shape)
    assert strides is not None or offset is not None or len(values) == math.prod(shape), type_
    t = dict(dtype=dtype, shape=shape, b64=base64.b64encode(b"".join(element(dtype, v) for v in values)).decode())
    if strides is not None: t["strides"] = strides
    if offset is not None: t["offset"] = offset
    return t


def S(dtype, value):
    """A scalar."""
    if isinstance(value, float): value = str(struct.unpack(FLOAT[dtype], element(dtype, value))[0]) if dtype in FLOAT else str(value)
    return dict(dtype=dtype, value=value)


def C(id_, what, program, args, expect, tol=None):
    """A case. Zeros' signs count."""
    CASES.append(dict(id="fault." + id_, what=what, program="fusion @main" + program + "\n", args=args, expect=expect,
                      tol=tol or dict(ulp=0, sign0=True)))


def E(id_, what, program, args, stage, *has):
    """A program that must be refused, with these words in its message."""
    C(id_, what, program, args, dict(error=dict(stage=stage, has=list(has))))


def f32(x): return struct.unpack("<f", struct.pack("<f", x))[0]


# ---- host scalars, rank-0 tensors, promotion ---------------------------------------------------------------------------------

C("1.rank0", "a rank-0 operand ranked like a bare number, so the power changed dtype", "(%x: u8[]) { %y = pow 2, %x return %y }",
  [T("u8[]", 17)], [T("u8[]", 0)])
C("1.rank1", "the same, rank 1", "(%x: u8[?]) { %y = pow 2, %x return %y }", [T("u8[1]", 17)], [T("u8[1]", 0)])
C("1.scalar", "the same, the number known only at run time", "(%x: u8[], %s: i64) { %y = pow %s, %x return %y }",
  [T("u8[]", 17), S("i64", 2)], [T("u8[]", 0)])
C("3", "two literal branches of a select became f64", "(%m: bool[?, ?, ?], %x: f32[?, ?, ?]) { %t = select %m, -0.0, 0.0 %r = add %t, %x return %t, %r }",
  [T("bool[4,2,3]", *[1, 0] * 12), T("f32[4,2,3]", *range(24))],
  [T("f32[4,2,3]", *[-0.0, 0.0] * 12), T("f32[4,2,3]", *range(24))])
C("3.zero", "the same: -0 + -0 stays negative", "(%m: bool[?], %x: f32[?]) { %t = select %m, -0.0, 0.0 %r = add %t, %x return %r }",
  [T("bool[2]", 1, 0), T("f32[2]", -0.0)], [T("f32[2]", -0.0, 0.0)])
C("5", "a rank-0 tensor in host memory could not meet a device tensor", "(%x: f32[?], %s: f32[] @host) { %a = mul %x, %s %y = mul %a, %s return %y }",
  [T("f32[4]", 3, -4, 5.5, -0.0), T("f32[]", 1)], [T("f32[4]", 3, -4, 5.5, -0.0)])
C("7", "a literal too big for the dtype was wrapped before the comparison", "(%x: u8[?]) { %y = eq %x, 300 return %y }",
  [T("u8[3]", 0, 44, 255)], [T("bool[3]", 0)])
C("7.scalar", "the same with a number of the run", "(%x: u8[?], %s: i64) { %y = eq %x, %s %z = lt %x, %s return %y, %z }",
  [T("u8[3]", 0, 44, 255), S("i64", 300)], [T("bool[3]", 0), T("bool[3]", 1)])
C("9", "a negation that should wrap was compared before it wrapped", "(%x: u8[?], %y: u8[?]) { %n = neg %x %r = lt %n, %y return %r, %n }",
  [T("u8[1]", 6), T("u8[1]", 4)], [T("bool[1]", 0), T("u8[1]", 250)])
C("9.literal", "the same against a literal, and as scalars", "(%x: u8) { %n = neg %x %r = lt %n, 4 return %r }", [S("u8", 6)], [S("bool", 0)])
C("11", "an i32 sum was made in 64 bits because a cast follows", "(%x: i32[?]) { %s = add %x, %x %y = cast %s, dtype=i64 return %y }",
  [T("i32[1]", 2147483647)], [T("i64[1]", -2)])
C("11.scalar", "the same on host scalars", "(%x: i32) { %s = add %x, %x %y = cast %s, dtype=i64 return %y }", [S("i32", 2147483647)], [S("i64", -2)])
C("13.half", "the result's dtype came from the first operand alone", "(%x: f16[?], %n: f32[?]) { %y = ldexp %x, %n return %y }",
  [T("f16[1]", 1.5), T("f32[1]", 2)], [T("f32[1]", 6)])
C("13.bool", "the same the other way round", "(%x: bool[?], %n: f16[?]) { %y = ldexp %x, %n return %y }", [T("bool[1]", 1), T("f16[1]", 3)], [T("f16[1]", 8)])
C("15", "host rank-0 plus literal moved to the device", "(%x: f32[] @host) { %y = add %x, 3.0 return %y }", [T("f32[]", 2)], [T("f32[]", 5)])
C("17.zeros", "a run-time integer could not be a tensor's value", "(%n: i64) { %z = full [3], 0.0, dtype=f32 %y = add %z, %n return %y }", [S("i64", 5)],
  [T("f32[3]", 5)])
C("17.full", "the same as a fill value", "(%n: i64) { %y = full [3], %n return %y }", [S("i64", 5)], [T("i64[3]", 5)])

# ---- rank-0 tensors in shape and reduction ops -----------------------------------------------------------------------------------

C("20", "a scan of a rank-0 constant failed where an input worked", "(%x: f32[]) { %c = full [], 5.0, dtype=f32 %a = cumsum %c, axis=0 %b = cumsum %x, axis=0 return %a, %b }",
  [T("f32[]", 5)], [T("f32[]", 5), T("f32[]", 5)])
C("20.many", "... and so did scans of one value many times",
  "(%x: f32[?]) { %c = full [5], 2.0 %a = cumsum %c, axis=0 %e = expand %x, [5] %b = cumsum %e, axis=0 %m, %p = cummax %e, axis=0 return %a, %b, %m, %p }",
  [T("f32[1]", 3)], [T("f32[5]", 2, 4, 6, 8, 10), T("f32[5]", 3, 6, 9, 12, 15), T("f32[5]", 3), T("i64[5]", 0, 1, 2, 3, 4)])
C("20.others", "the other ops that own an axis, at rank 0",
  "(%x: f32[]) { %a, %p = sort %x, axis=0 %b, %q = topk %x, 1, axis=-1 %g = argsort %x, axis=0 %c, %r = cummin %x, axis=0 %d = cumprod %x, axis=0 return %a, %p, %b, %q, %g, %c, %r, %d }",
  [T("f32[]", 3)], [T("f32[]", 3), T("i64[]", 0), T("f32[]", 3), T("i64[]", 0), T("i64[]", 0), T("f32[]", 3), T("i64[]", 0), T("f32[]", 3)])
C("20.reduce", "reductions and softmax at rank 0", "(%x: f32[]) { %m = mean %x %v = var %x %s = softmax %x, axis=0 %a = argmax %x, axis=0 return %m, %v, %s, %a }",
  [T("f32[]", 3)], [T("f32[]", 3), T("f32[]", NAN), T("f32[]", 1), T("i64[]", 0)])
C("22", "reducing what a full reduction left hit an internal check", "(%x: i64[?]) { %s = sum %x %y = max %s return %y }", [T("i64[4]", 1, 2, 3, 4)], [T("i64[]", 10)])
E("24", "an axis out of range crashed the process", "(%x: f32[?, ?, ?, ?, ?]) { %v = var %x, axes=[1, 2, 5] return %v }", [T("f32[1,1,1,1,1]", 1)],
  "compile", "5", "-5", "4")

# ---- empty tensors -------------------------------------------------------------------------------------------------------------

C("25", "mean of nothing was 0 in the fused mean and variance", "(%x: f32[?]) { %v, %m = var_mean %x return %v, %m }", [T("f32[0]")], [T("f32[]", NAN), T("f32[]", NAN)])
C("25.rows", "the same along an axis", "(%x: f32[?, ?]) { %v, %m = var_mean %x, axes=[0] return %v, %m }", [T("f32[0,1]")], [T("f32[1]", NAN), T("f32[1]", NAN)])
C("27", "devices disagreed on reductions of nothing",
  "(%x: f32[?, ?]) { %m = mean %x, axes=[0] %s = sum %x, axes=[0] %p = prod %x, axes=[0] %o = any %x, axes=[0] %a = all %x, axes=[0] return %m, %s, %p, %o, %a }",
  [T("f32[0,2]")], [T("f32[2]", NAN), T("f32[2]", 0.0), T("f32[2]", 1), T("bool[2]", 0), T("bool[2]", 1)])
E("27.max", "the greatest of nothing was a number", "(%x: f32[?, ?]) { %m = max %x, axes=[0] return %m }", [T("f32[0,2]")], "run", "max")
C("27.max_empty", "... but nothing asked of nothing is nothing", "(%x: f32[?, ?]) { %m = max %x, axes=[1] return %m }", [T("f32[0,2]")], [T("f32[0]")])
C("29", "a launch over no element faulted", "(%x: f32[?, ?]) { %y = neg %x return %y }", [T("f32[0,4]")], [T("f32[0,4]")])
C("31", "a tiled copy divided by a run-time extent of 0", "(%x: f32[?, 64]) { %t = transpose %x, 0, 1 %y = add %t, 1.0 return %y }", [T("f32[0,64]")], [T("f32[64,0]")])
C("33", "shape inference failed for a cat with an empty operand", "(%a: f32[1, 2, 2, 3], %b: f32[1, 2, 2, 0]) { %d = mul %a, 2.0 %y = cat %d, %b, axis=-1 return %y }",
  [T("f32[1,2,2,3]", *range(12)), T("f32[1,2,2,0]")], [T("f32[1,2,2,3]", *range(0, 24, 2))])
C("33.first", "the same with the empty operand first, extents of the run", "(%a: f32[?, ?], %b: f32[?, ?]) { %y = cat %b, %a, axis=1 return %y }",
  [T("f32[1,3]", 1, 2, 3), T("f32[1,0]")], [T("f32[1,3]", 1, 2, 3)])
C("35", "gathering from an empty tensor read wild memory", "(%x: f32[?], %i: i64[?]) { %y = gather %x, %i, axis=0 return %y }", [T("f32[0]"), T("i64[1]", 0)], [T("f32[1]", 0.0)])

# ---- strides and offsets ---------------------------------------------------------------------------------------------------------

C("52", "a column-major block of a bigger buffer was read with the wrong indexing", "(%x: f32[?, ?]) { %y = add %x, 5.0 return %y }",
  [T("f32[4,8]", *range(64), strides=[1, 8], offset=0)], [T("f32[4,8]", *[i + 8 * j + 5 for i in range(4) for j in range(8)])])
C("54", "a negative stride was divided as an unsigned number", "(%x: u32[?, ?]) { %y = add %x, 1 return %y }",
  [T("u32[4,3]", *range(12), strides=[-1, 4], offset=3)], [T("u32[4,3]", *[4 * j + 3 - i + 1 for i in range(4) for j in range(3)])])
C("56", "a descriptor's byte offset was ignored", "(%x: f32[?]) { %y = add %x, 0.0 return %y }", [T("f32[4]", *range(16), offset=8)], [T("f32[4]", 8, 9, 10, 11)])
C("58", "a pair of halves was loaded from an odd element", "(%x: f16[?, ?]) { %s = slice %x, [0, 1], [1, 3], [1, 1] %y = mul %s, 2.0 return %s, %y }",
  [T("f16[1,3]", 1.5, 2.5, 3.5)], [T("f16[1,2]", 2.5, 3.5), T("f16[1,2]", 5, 7)])
C("58.long", "the same where a vector path would be taken", "(%x: f16[?]) { %y = slice %x, [1], [65], [1] return %y }",
  [T("f16[65]", *range(65))], [T("f16[64]", *range(1, 65))])
C("60", "the vector width of one part was used in another with an odd pitch",
  "(%x: bf16[?, ?], %m: bf16[?, ?]) { %p = mul %x, %m %s = slice %p, [0, 0], [8, 8], [1, 1] return %p, %s }",
  [T("bf16[8,9]", *range(72)), T("bf16[8,9]", *[i % 2 for i in range(72)])],
  [T("bf16[8,9]", *[i * (i % 2) for i in range(72)]), T("bf16[8,8]", *[9 * r + k if (9 * r + k) % 2 else 0 for r in range(8) for k in range(8)])])

# ---- aliasing --------------------------------------------------------------------------------------------------------------------

A = [float(i) - 33 for i in range(67)]
C("63", "one buffer as input and output was promised to be two",
  "(%a: f32[?]) { %b = add %a, 1.0 %c = add %b, 2.0 %d = mul %a, %b %q = div %d, %c return %b into %a, %q }", [T("f32[67]", *A)],
  [T("f32[67]", *[x + 1 for x in A]), T("f32[67]", *[f32(x * (x + 1) / (x + 3)) if x != -3 else INF for x in A])])
C("63.reversed", "the same where an element is read after its neighbour was written", "(%a: f32[?]) { %f = flip %a %b = add %a, %f return %b into %a, %f }",
  [T("f32[67]", *A)], [T("f32[67]", 0), T("f32[67]", *[-x for x in A[:33]], 0.0, *[-x for x in A[34:]])])
C("65", "gather, add and scatter of one index twice became two additions",
  "(%x: f64[?, ?], %i: i64[?]) { %g = take %x, %i, axis=0 %s = add %g, %g %j = unsqueeze %i, axes=[1] %k = expand %j, [-1, 2] %y = scatter %x, %k, %s, axis=0, mode=set return %y into %x }",
  [T("f64[1,2]", -0.8716, 0.1114), T("i64[2]", 0, 0)], [T("f64[1,2]", -1.7432, 0.2228)])

# ---- casts -----------------------------------------------------------------------------------------------------------------------

C("67", "NaN became the least integer in one mode, 0 in another", "(%x: f32[?]) { %a = asin %x %b = min %a, 0.8 %y = cast %b, dtype=i32 return %y }",
  [T("f32[4]", 1, 2, 3, 4)], [T("i32[4]", 0)])
C("69", "negative floats to unsigned differed between devices", "(%x: f32[?]) { %y = cast %x, dtype=u32 return %y }", [T("f32[3]", -1, -0.9, 4294967296)],
  [T("u32[3]", 0, 0, 4294967295)])
C("69.scalar", "the same on the host", "(%x: f32, %z: f32) { %y = cast %x, dtype=u32 %w = cast %z, dtype=u32 return %y, %w }", [S("f32", -1.0), S("f32", 4294967296.0)],
  [S("u32", 0), S("u32", 4294967295)])
C("71", "two casts in a row were merged into one", "(%x: f32[?]) { %a = cast %x, dtype=i32 %y = cast %a, dtype=u32 return %y }", [T("f32[1]", -31)], [T("u32[1]", 4294967265)])
C("73", "floats above 2^63 went through a signed conversion", "(%x: f32[?]) { %y = cast %x, dtype=u64 return %y }", [T("f32[3]", 1.2e19, 1.8e19, 2e19)],
  [T("u64[3]", 11999999536803086336, 18000000404716257280, 18446744073709551615)])
C("76.i64", "an integer was rounded twice on its way to bf16", "(%x: i64[?]) { %y = cast %x, dtype=bf16 return %y }", [T("i64[1]", 8623489025)], [T("bf16[1]", 8657043456)])
C("76.f64", "a double was rounded twice on its way to bf16", "(%x: f64[?]) { %y = cast %x, dtype=bf16 return %y }", [T("f64[1]", 1 + 2**-8 + 2**-30)], [T("bf16[1]", 1.0078125)])
C("76.scalar", "the same on the host", "(%x: i64, %z: f64) { %y = cast %x, dtype=bf16 %w = cast %z, dtype=bf16 return %y, %w }",
  [S("i64", 8623489025), S("f64", 1 + 2**-8 + 2**-30)], [S("bf16", 8657043456.0), S("bf16", 1.0078125)])
C("78", "narrowing and widening again was folded away", "(%x: f32[?]) { %h = cast %x, dtype=f16 %y = cast %h, dtype=f32 %e = eq %x, %y return %y, %e }",
  [T("f32[1]", -2.643845)], [T("f32[1]", -2.64453125), T("bool[1]", 0)])
C("80", "a bf16 product was cut instead of rounded", "(%x: bf16[?]) { %y = mul %x, %x return %y }", [T("bf16[1]", 1.0703125)], [T("bf16[1]", 1.1484375)])
C("82", "signed bytes passed to a kernel by value were widened without sign",
  "(%a: i8, %b: i8, %z: f64[?]) { %c = cast %a, dtype=f64 %d = cast %b, dtype=f64 %x = add %z, %c %y = add %z, %d return %x, %y }",
  [S("i8", -3), S("i8", 5), T("f64[1]", 0)], [T("f64[1]", -3), T("f64[1]", 5)])
C("82.add", "the same inside an op", "(%a: i8, %z: i8[?]) { %s = add %z, %a %y = cast %s, dtype=f64 return %y }", [S("i8", -3), T("i8[2]", 0, 5)], [T("f64[2]", -3, 2)])
C("84", "a half kept in f32 differed from its stored copy", "(%a: bf16[?], %b: bf16[?]) { %s = add %a, %b %t = add %a, %b %e = eq %t, %s return %s, %e }",
  [T("bf16[1]", 256), T("bf16[1]", 1)], [T("bf16[1]", 256), T("bool[1]", 1)])

# ---- accumulators ----------------------------------------------------------------------------------------------------------------

C("85", "a mean of halves overflowed before its division", "(%x: f16[?]) { %y = mean %x return %y }", [T("f16[4]", 60000)], [T("f16[]", 60000)])
C("87", "a running sum of halves stopped growing", "(%x: f16[?]) { %y = sum %x return %y }", [T("f16[4096]", 1)], [T("f16[]", 4096)])
C("89", "sums of bf16 stopped at 256", "(%x: bf16[1]) { %e = expand %x, [70000] %s = sum %e %m = mean %e return %s, %m }", [T("bf16[1]", 1)], [T("bf16[]", 70144), T("bf16[]", 1)])

# ---- NaN and infinity in min, max, clamp -------------------------------------------------------------------------------------------

C("92", "whether a NaN survived a maximum hung on how many there were",
  "(%x: f32[?], %y: f32[?]) { %a = max %x %b = max %y %c = min %x %d = min %y return %a, %b, %c, %d }",
  [T("f32[4]", NAN, NAN, NAN, 42), T("f32[3]", NAN, NAN, 1.9)], [T("f32[]", NAN)] * 4)
C("94", "the greatest of minus infinities was the least finite number", "(%x: f32[?], %y: f32[?]) { %a = max %x %b = min %y return %a, %b }",
  [T("f32[2]", -INF), T("f32[2]", INF)], [T("f32[]", -INF), T("f32[]", INF)])
C("96", "clamp with its limits crossed differed between implementations", "(%x: f32[?]) { %y = clamp %x, 4.0, 3.0 return %y }", [T("f32[4]", 2, 3.5, 9, NAN)], [T("f32[4]", 3, 3, 3, NAN)])

# ---- arg-reductions ----------------------------------------------------------------------------------------------------------------

C("97", "among equals the last position was given", "(%x: i32[?]) { %y = argmax %x, axis=0 return %y }", [T("i32[3]", 3, 4, 4)], [T("i64[]", 1)])
C("97.long", "the same over many", "(%x: i32[?], %z: f32[?]) { %y = argmax %x %w = argmin %x %v = argmax %z return %y, %w, %v }", [T("i32[1000]", 7), T("f32[1000]", *[0.0, -0.0] * 500)],
  [T("i64[]", 0)] * 3)
C("99", "devices disagreed on where a NaN is", "(%x: f32[?]) { %y = argmax %x %z = argmin %x return %y, %z }", [T("f32[3]", NAN, 6, 8)], [T("i64[]", 0)] * 2)
C("99.late", "the same with the NaN late", "(%x: f32[?]) { %y = argmax %x %z = argmin %x return %y, %z }", [T("f32[5]", 9, 6, NAN, 8, NAN)], [T("i64[]", 2)] * 2)
C("101", "an axis of extent 1 failed", "(%x: f32[?, ?]) { %y = argmax %x, axis=1 return %y }", [T("f32[32,1]", *range(32))], [T("i64[32]", 0)])

# ---- signed zero -------------------------------------------------------------------------------------------------------------------

C("104", "the fraction of -0 kept its sign", "(%x: f32[?]) { %f = frac %x %r = reciprocal %f return %f, %r }", [T("f32[1]", -0.0)], [T("f32[1]", 0.0), T("f32[1]", INF)])
C("106", "a zero remainder had the dividend's sign", "(%a: f32[?], %b: f32[?]) { %y = mod %a, %b return %y }", [T("f32[2]", -1, 2), T("f32[2]", 1, -1)], [T("f32[2]", 0.0, -0.0)])

# ---- integer division ----------------------------------------------------------------------------------------------------------------

C("107", "a zero divisor trapped", "(%a: i64[?], %b: i64[?]) { %y = floordiv %a, %b %z = truncdiv %a, %b %w = ceildiv %a, %b return %y, %z, %w }",
  [T("i64[3]", 7, -7, 0), T("i64[3]", 0)], [T("i64[3]", -1)] * 3)
C("107.scalar", "the same on the host, and MIN / -1", "(%a: i64, %b: i64, %m: i64, %n: i64) { %y = floordiv %a, %b %z = truncdiv %m, %n %w = mod %m, %n return %y, %z, %w }",
  [S("i64", 7), S("i64", 0), S("i64", -2**63), S("i64", -1)], [S("i64", -1), S("i64", -2**63), S("i64", 0)])
C("107.min", "MIN / -1 trapped", "(%a: i32[?], %b: i32[?]) { %y = floordiv %a, %b %z = mod %a, %b %w = fmod %a, %b return %y, %z, %w }",
  [T("i32[1]", -2**31), T("i32[1]", -1)], [T("i32[1]", -2**31), T("i32[1]", 0), T("i32[1]", 0)])
C("109", "a remainder by a run-time zero crashed", "(%x: i32[?], %d: i32) { %y = mod %x, %d return %y }", [T("i32[10]", *range(-5, 5)), S("i32", 0)], [T("i32[10]", *range(-5, 5))])
C("111", "a ceiling division overflowed in a shift", "(%n: i32, %x: i32[?]) { %y = ceildiv %n, 10 %z = ceildiv %x, 10 return %y, %z }",
  [S("i32", 24), T("i32[4]", 24, 2147483647, -24, 30)], [S("i32", 3), T("i32[4]", 3, 214748365, -2, 3)])
C("113", "an unsigned remainder was emitted as signed", "(%a: u32[?], %b: u32[?]) { %y = mod %a, %b return %y }", [T("u32[1]", 3583196299), T("u32[1]", 524288)], [T("u32[1]", 212107)])

# ---- float remainder and division ------------------------------------------------------------------------------------------------------

for d in ("f64", "f32"):
    C(f"116.{d}", "the quotient was rounded up before the floor", f"(%a: {d}[?], %b: {d}[?]) {{ %y = floordiv %a, %b return %y }}",
      [T(f"{d}[3]", 1, 0.5, 6), T(f"{d}[3]", 0.1, 0.1, 0.2)], [T(f"{d}[3]", 9, 4, 29)])
C("118", "an approximate division came out below one", "(%t: f32[?]) { %a = abs %t %d = div %a, %t %y = cast %d, dtype=i32 return %y }", [T("f32[1024]", *range(1, 1025))], [T("i32[1024]", 1)])

# ---- power -----------------------------------------------------------------------------------------------------------------------------

C("119", "0 to a negative power changed with broadcasting", "(%x: i64[?], %n: i64, %t: i64[?]) { %a = pow %x, %n %b = pow %x, -1 %c = pow %x, %t return %a, %b, %c }",
  [T("i64[5]", -3, -2, -1, 0, 1), S("i64", -1), T("i64[5]", -1)], [T("i64[5]", 0, 0, -1, 0, 1)] * 3)
C("121", "0 to the power 64 became 1 once compiled", "(%x: i32[?], %n: i32[?]) { %y = pow %x, %n return %y }",
  [T("i32[5]", 0, 0, 0, 1, -1), T("i32[5]", 64, 31, 0, 100, 101)], [T("i32[5]", 0, 0, 1, 1, -1)])
C("121.constant", "the same with the exponent in the text", "(%x: i32[?]) { %a = pow %x, 64 %b = pow %x, 31 %c = pow %x, 0 return %a, %b, %c }", [T("i32[1]", 0)],
  [T("i32[1]", 0), T("i32[1]", 0), T("i32[1]", 1)])
C("121.scalar", "the same on the host", "(%x: i32, %n: i32) { %y = pow %x, %n return %y }", [S("i32", 0), S("i32", 64)], [S("i32", 0)])
C("123", "an integer power saturated instead of wrapping", "(%x: i64[?], %y: i16[?]) { %a = pow %x, %x %b = pow %y, 2 return %a, %b }", [T("i64[1]", 10000), T("i16[1]", 222)],
  [T("i64[1]", 0), T("i16[1]", -16252)])

# ---- shifts and folding ------------------------------------------------------------------------------------------------------------------

for d, w in (("i32", 32), ("u8", 8), ("i64", 64)):
    C(f"126.{d}", "a shift by the width left what the machine left", f"(%x: {d}[?], %n: {d}[?]) {{ %a = shl %x, %n %b = lshr %x, %n %c = shr %x, %n return %a, %b, %c }}",
      [T(f"{d}[2]", 1), T(f"{d}[2]", w, w - 1)],
      [T(f"{d}[2]", 0, (1 << w - 1) - (1 << w) * (d[0] == "i")), T(f"{d}[2]", 0), T(f"{d}[2]", 0)])
C("128", "folding a shift lost the top bit", "(%x: u8[?]) { %y = shl %x, 7 %c = full [1], 3, dtype=u8 %z = shl %c, 7 return %y, %z }", [T("u8[1]", 3)], [T("u8[1]", 128)] * 2)
C("130", "u64 constants above 2^63 could not be folded",
  "(%x: u64) { %a = add %x, 5 %c = full [1], 9223372036854775808, dtype=u64 %b = add %c, 5 %d = full [1], 4294967297, dtype=u64 %e = mul %d, 2147483651 return %a, %b, %e }",
  [S("u64", 2**63)], [S("u64", 2**63 + 5), T("u64[1]", 9223372036854775813), T("u64[1]", 9223372051887161347)])
C("132", "a 64-bit counter was made in 32 bits", "() { %i = iota 9, 0, 1, dtype=i64 %y = mul %i, 1500000000 return %y }", [], [T("i64[9]", *[1500000000 * i for i in range(9)])])

# ---- integer sums and scans ----------------------------------------------------------------------------------------------------------------

C("134", "the sum of 32-bit integers was kept in 32 bits", "(%x: i32[?]) { %y = sum %x return %y }", [T("i32[2]", 2147483647)], [T("i64[]", 4294967294)])
C("136", "256 trues summed to 0 in 8 bits", "(%x: bool[?]) { %s = sum %x %a = any %x %c = count_nonzero %x return %s, %a, %c }", [T("bool[256]", 1)], [T("i64[]", 256), T("bool[]", 1), T("i64[]", 256)])
C("138", "a cast and a scan changed places", "(%x: f32[?]) { %s = cumsum %x, axis=0 %y = cast %s, dtype=i32 %c = cast %x, dtype=i32 %z = cumsum %c, axis=0 return %y, %z }",
  [T("f32[2]", 0.9201, 0.1166)], [T("i32[2]", 0, 1), T("i64[2]", 0, 0)])

# ---- booleans ----------------------------------------------------------------------------------------------------------------------------

C("140", "true was stored as 255", "(%x: f32[?]) { %y = le %x, 0.0 %z = lnot %y %n = not %y return %y, %z, %n }", [T("f32[5]", -1, 0, 1, NAN, -INF)],
  [T("bool[5]", 1, 1, 0, 0, 1), T("bool[5]", 0, 0, 1, 1, 0), T("bool[5]", 0, 0, 1, 1, 0)])
BYTES = dict(T("u8[4]", 0, 1, 2, 255), dtype="bool")
C("140.in", "bytes other than 0 and 1 taken for bools", "(%x: bool[?]) { %y = not %x %z = and %x, true %s = sum %x %c = cast %x, dtype=i32 return %y, %z, %s, %c }", [BYTES],
  [T("bool[4]", 1, 0, 0, 0), T("bool[4]", 0, 1, 1, 1), T("i64[]", 3), T("i32[4]", 0, 1, 1, 1)])
C("142", "-0 in a half was true by its bits", "(%x: bf16[?]) { %y = cast %x, dtype=bool return %y }", [T("bf16[4]", -0.0, 0.0, NAN, 1e-40)], [T("bool[4]", 0, 0, 1, 1)])

# ---- variance and softmax ----------------------------------------------------------------------------------------------------------------

C("143", "variance as a difference of squares lost everything", "(%x: f32[?]) { %y = var %x return %y }", [T("f32[2]", 2281.5, 2281.25)], [T("f32[]", 0.03125)])
C("145", "squares of the elements overflowed, those of the deviations do not", "(%x: f32[?]) { %y = std %x, correction=0 return %y }", [T("f32[2]", 1.1e20, 0.9e20)],
  [T("f32[]", 1e19)], dict(ulp=4))
C("147", "axes of extent 1 were dropped from the count", "(%x: f64[?, 1, ?, 1]) { %y = var %x, axes=[1, 3] return %y }", [T("f64[8,1,5,1]", *range(40))], [T("f64[8,5]", NAN)])
C("149", "a scale moved inside a softmax made ones of NaN rows",
  "(%x: f32[?, ?]) { %a = mul %x, -1.7e14 %b = mul %a, -1.7e14 %c = mul %b, -1.7e14 %y = softmax %c, axis=-1 return %y }",
  [T("f32[2,3]", 1, -2, 3, 1e-3, 5, -7)], [T("f32[2,3]", NAN)])
C("151", "a row of minus infinities became a uniform one", "(%x: f32[?, ?]) { %y = softmax %x, axis=1 return %y }", [T("f32[2,64]", *[-INF] * 64, *[-INF] * 40, 3, *[-INF] * 23)],
  [T("f32[2,64]", *[NAN] * 64, *[0.0] * 40, 1, *[0.0] * 23)])
C("153", "one lane of a NaN row stayed finite", "(%x: f32[?]) { %y = log_softmax %x, axis=0 return %y }", [T("f32[3]", NAN, INF, -INF)], [T("f32[3]", NAN)])

# ---- rewrites and contraction ----------------------------------------------------------------------------------------------------------------

P = f32(f32(1.1) * f32(1.3))
C("156", "a product and a difference were contracted", "(%a: f32[?], %b: f32[?], %p: f32[?]) { %m = mul %a, %b %y = sub %m, %p %r = sub %p, %m return %y, %r }",
  [T("f32[9]", 1.1), T("f32[9]", 1.3), T("f32[9]", P)], [T("f32[9]", 0.0)] * 2)
C("156.scalar", "the same on the host", "(%a: f32, %b: f32, %p: f32) { %m = mul %a, %b %y = sub %m, %p return %y }", [S("f32", 1.1), S("f32", 1.3), S("f32", P)], [S("f32", 0.0)])
C("158", "a product of exponentials was folded into one", "(%a: f32[?], %b: f32[?]) { %x = exp %a %y = exp %b %z = mul %x, %y return %z }", [T("f32[1]", 100), T("f32[1]", -100)], [T("f32[1]", INF)])
C("160", "0 times x was folded to 0", "(%x: f32[?]) { %z = mul 0.0, %x %c = gt %x, 0.0 %y = select %c, %z, 1.0 return %y }", [T("f32[2]", INF, -INF)], [T("f32[2]", NAN, 1)])
C("162", "the tests for NaN were optimised away", "(%x: f32[?]) { %a = isnan %x %b = ne %x, %x %c = isfinite %x return %a, %b, %c }", [T("f32[3]", NAN, INF, 1)],
  [T("bool[3]", 1, 0, 0), T("bool[3]", 1, 0, 0), T("bool[3]", 0, 0, 1)])

# ---- subnormals ------------------------------------------------------------------------------------------------------------------------------

SUB = T("f32[4]", 2**-126, 2**-127, 2**-149, 0.0)
C("165", "powers in the subnormal range came out 0", "(%n: f32[?]) { %y = pow 2.0, %n %z = exp2 %n return %y, %z }", [T("f32[4]", -126, -127, -149, -150)], [SUB, SUB])
C("167", "subnormal numbers were flushed", "(%a: f64[?], %b: f64[?]) { %y = mul %a, %b return %y }", [T("f64[2]", 1e-310, 1e-200), T("f64[2]", 1e100, 1e-110)], [T("f64[2]", 9.99999999999997e-211, 1e-310)])
C("167.f32", "the same in f32, also as a subnormal operand", "(%a: f32[?]) { %y = mul %a, 0.5 %z = add %a, %a %c = gt %a, 0.0 return %y, %z, %c }", [T("f32[2]", 2**-126, 2**-149)],
  [T("f32[2]", 2**-127, 0.0), T("f32[2]", 2**-125, 2**-148), T("bool[2]", 1)])

# ---- special functions -----------------------------------------------------------------------------------------------------------------------

C("164", "erf differed between vector body and scalar tail", "(%x: f32[?, ?]) { %y = erf %x return %y }", [T("f32[7,5]", 4.5)], [T("f32[7,5]", 1)])
C("170", "erf in f64 had the coefficients of f32", "(%x: f64[?]) { %y = erf %x %z = erfc %x return %y, %z }", [T("f64[1]", 1)], [T("f64[1]", 0.8427007929497149), T("f64[1]", 0.15729920705028513)], dict(ulp=2))
C("172", "log1p in f64 was far off near -0.414", "(%x: f64[?]) { %y = log1p %x return %y }", [T("f64[1]", -0.4141892)], [T("f64[1]", -0.5347584084320597)], dict(ulp=2))
C("174", "the modulus of a number with an infinite part was NaN", "(%x: c64[?]) { %y = abs %x return %y }", [T("c64[3]", (INF, NAN), (NAN, -INF), (3e30, 4e30))], [T("f32[3]", INF, INF, 5e30)], dict(ulp=1))
C("176", "the root of a large negative real was off by a factor", "(%x: c128[?]) { %y = sqrt %x return %y }", [T("c128[2]", (-1e40, 0.0), (-1e40, -0.0))], [T("c128[2]", (0.0, 1e20), (0.0, -1e20))])

# ---- scans -----------------------------------------------------------------------------------------------------------------------------------

for n in (10, 100):
    C(f"177.{n}", "a running sum of infinities became NaN for some lengths", "(%x: f64[?]) { %y = cumsum %x, axis=0 return %y }", [T(f"f64[{n}]", INF)], [T(f"f64[{n}]", INF)])

# ---- slice, pad, cat, gather, scatter ------------------------------------------------------------------------------------------------------

C("180", "a stop beyond the end made a longer, padded result", "(%x: f32[?], %a: i64, %b: i64, %c: i64, %d: i64) { %y = slice %x, [%a], [%b], [1] %z = slice %x, [%c], [%d], [1] return %y, %z }",
  [T("f32[9]", *range(9)), S("i64", 5), S("i64", 100), S("i64", 11), S("i64", 13)], [T("f32[4]", 5, 6, 7, 8), T("f32[0]")])
C("182", "two slices in a row were merged without clamping the outer start",
  "(%x: f32[?], %i: i64[]) { %r = roll %x, [4], axes=[0] %s = item %i %e = add %s, 4 %y = slice %r, [%s], [%e], [1] return %y }",
  [T("f32[9]", *range(0, 90, 10)), T("i64[]", 12)], [T("f32[4]", 10, 20, 30, 40)])
C("182.host", "the same with a start that the host knows: NumPy's rule gives nothing",
  "(%x: f32[?], %s: i64) { %r = roll %x, [4], axes=[0] %e = add %s, 4 %y = slice %r, [%s], [%e], [1] return %y }", [T("f32[9]", *range(0, 90, 10)), S("i64", 12)], [T("f32[0]")])
E("184.crop", "a crop of more than there is was evened out by a pad", "(%x: f32[?]) { %y = pad %x, [-3], [1], 9.0 return %y }", [T("f32[2]", 1, 2)], "run", "3", "2")
C("184", "... while cropping all of it is fine", "(%x: f32[?]) { %y = pad %x, [-2], [2], 9.0 return %y }", [T("f32[2]", 1, 2)], [T("f32[2]", 9)])
C("186", "cat along an axis that is a broadcast was refused", "(%a: f32[4], %b: f32[4, 3]) { %c = broadcast %a, [4, 1], dims=[0] %y = cat %c, %b, axis=1 return %y }",
  [T("f32[4]", *range(4)), T("f32[4,3]", *range(10, 22))], [T("f32[4,4]", *[v for i in range(4) for v in (i, 10 + 3 * i, 11 + 3 * i, 12 + 3 * i)])])
C("188", "an empty operand of cat was counted wrongly", "(%a: f32[?, ?, ?], %b: f16[?, ?, ?], %c: f64[?, ?, ?]) { %y = cat %a, %b, %c, axis=1 return %y }",
  [T("f32[5,3,2]", 1), T("f16[5,0,2]"), T("f64[5,9,2]", 2)], [T("f64[5,12,2]", *([1] * 6 + [2] * 18) * 5)])
C("190", "index -1 wrapped in one mode and was refused in another: here it wraps once, everywhere", "(%x: f32[?, ?], %i: i64[?]) { %y = take %x, %i, axis=1 return %y }",
  [T("f32[2,3]", *range(6)), T("i64[3]", -1, -3, -4)], [T("f32[2,3]", 2, 0, 0.0, 5, 3, 0.0)])
C("192", "repeated indices of a scatter were written in any order", "(%x: i64[?], %i: i64[?], %v: i64[?]) { %y = scatter %x, %i, %v, axis=0, mode=set return %y }",
  [T("i64[9]", *range(1, 10)), T("i64[5]", 0, 1, 1, 1, 2), T("i64[5]", *range(11, 16))], [T("i64[9]", 11, 14, 15, *range(4, 10))])
C("194", "an element that must not be written went out of bounds", "(%x: u32[?], %i: i64[?], %v: u32[?]) { %y = scatter %x, %i, %v, axis=0, mode=add return %y }",
  [T("u32[4]", *range(4)), T("i64[2]", 0, 0xFFFFFFF0), T("u32[2]", 5, 7)], [T("u32[4]", 5, 1, 2, 3)])
for d in ("f32", "f64"):
    C(f"247.{d}", "a scatter of float maxima made code that the driver refused", f"(%x: {d}[?], %i: i64[?], %v: {d}[?]) {{ %y = scatter %x, %i, %v, axis=0, mode=max return %y }}",
      [T(f"{d}[4]", 0, -5, NAN, -0.0), T("i64[6]", 0, 1, 1, 2, 0, 3), T(f"{d}[6]", -1, -7, -2, 4, NAN, 0.0)], [T(f"{d}[4]", NAN, -2, NAN, 0.0)])

# ---- reshape and run-time shapes ---------------------------------------------------------------------------------------------------------------

C("195", "an extent that turned out 1 did not broadcast", "(%x: f32[?], %y: f32[?]) { %a = reshape %x, [-1, 4] %b = reshape %y, [-1, 4] %r = mul %a, %b return %r }",
  [T("f32[4]", 1, 2, 3, 4), T("f32[8]", *range(8))], [T("f32[2,4]", 0, 2, 6, 12, 4, 10, 18, 28)])
E("197", "-1 beside 0 gave an internal error", "(%x: f32[?]) { %y = reshape %x, [0, -1] return %y }", [T("f32[0]")], "run", "-1", "reshape")
PROGRAM_199 = "(%x: f32[?, ?]) { %n = numel %x %q = floordiv %n, 4 %r = reshape %x, [%q, 4] %y = squeeze %r, axes=[0] return %y }"
C("199", "a run-time reshape to extent 1 could not be squeezed", PROGRAM_199, [T("f32[2,2]", 1, 2, 3, 4)], [T("f32[4]", 1, 2, 3, 4)])
E("199.two", "... and an extent of 2 is refused by name", PROGRAM_199, [T("f32[2,4]", *range(8))], "run", "squeeze", "2")

# ---- random numbers ------------------------------------------------------------------------------------------------------------------------------


def philox(counter, key=0):
    """Philox-4x32-10: four words."""
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


assert philox(0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def uniform(e): return (philox(e // 4)[e % 4] >> 8) * 2**-24


for n in (1, 4, 5, 13):
    C(f"202.{n}", "only a quarter of the values agreed with a peer of the same generator", "(%n: i64) { %r = uniform [%n], 0.0, 1.0, 0, 0 return %r }", [S("i64", n)],
      [T(f"f32[{n}]", *[uniform(e) for e in range(n)])])
C("204", "random values hung on the thread layout", "(%x: f32[?, ?]) { %r = uniform [64], 0.0, 1.0, 0, 0 %y = mul %x, %r return %y, %r }", [T("f32[8,64]", 1)],
  [T("f32[8,64]", *[uniform(e) for e in range(64)] * 8), T("f32[64]", *[uniform(e) for e in range(64)])])
C("206", "a 64-bit offset was cut to 32 bits", "(%o: i64) { %r = uniform [4], 0.0, 1.0, 0, %o %q = uniform [4], 0.0, 1.0, 0, 1 return %r, %q }", [S("i64", 2**32 + 1)],
  [T("f32[4]", *[uniform(2**32 + 1 + e) for e in range(4)]), T("f32[4]", *[uniform(1 + e) for e in range(4)])])
C("206.high", "the same beyond 2^32 counters of four elements", "(%o: i64) { %r = uniform [9], 0.0, 1.0, 0, %o return %r }", [S("i64", 2**36 + 3)],
  [T("f32[9]", *[uniform(2**36 + 3 + e) for e in range(9)])])

# ---- limits and refusals ---------------------------------------------------------------------------------------------------------------------------

C("209", "programs of equal names shared code", "(%x: f32[?]) { %y = mul %x, 2.0 return %y }", [T("f32[2]", 1, 2)], [T("f32[2]", 2, 4)])
C("209.other", "programs of equal names shared code", "(%x: f32[?]) { %y = add %x, 100.0 return %y }", [T("f32[2]", 1, 2)], [T("f32[2]", 101, 102)])
NAMES = [f"%a{i}" for i in range(200)]
C("230", "200 tensors overflowed a kernel's parameters",
  "(" + ", ".join(f"{n}: f32[2, 2, 2, 2]" for n in NAMES) + ") { %s1 = add %a0, %a1 " + " ".join(f"%s{i} = add %s{i - 1}, %a{i}" for i in range(2, 200)) + " return %s199 }",
  [T("f32[2,2,2,2]", i) for i in range(200)], [T("f32[2,2,2,2]", 199 * 100)])
C("230.strided", "the same with strides that cannot be merged",
  "(" + ", ".join(f"{n}: f32[?, ?, ?, ?]" for n in NAMES) + ") { %s1 = add %a0, %a1 " + " ".join(f"%s{i} = add %s{i - 1}, %a{i}" for i in range(2, 200)) + " return %s199 }",
  [T("f32[2,2,2,2]", *[i] * 16, strides=[1, 2, 4, 8], offset=0) if i % 2 else T("f32[2,2,2,2]", i) for i in range(200)], [T("f32[2,2,2,2]", 199 * 100)])
E("241", "a wrong rank looked like a fault of the library", "(%x: f32[?, ?]) { %y = sum %x, axes=[0] : f32[?, ?] return %y }", [T("f32[1,1]", 1)], "compile", "f32[?, ?]")
CASTS = dict(bool=1, i8=-2, i16=-2, i32=-2, i64=-2, u8=0, u16=0, u32=0, u64=0, f16=-2.5, bf16=-2.5, f32=-2.5, f64=-2.5, c64=-2.5, c128=-2.5)
C("249", "a cast that was not offered ended the process",
  "(%x: f64[?]) { " + " ".join(f"%r{d} = cast %x, dtype={d}" for d in CASTS) + " return " + ", ".join(f"%r{d}" for d in CASTS) + " }", [T("f64[1]", -2.5)],
  [T(f"{d}[1]", v) for d, v in CASTS.items()])


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "faults.jsonl")
    text = "".join(json.dumps(case) + "\n" for case in CASES)
    assert len({c["id"] for c in CASES}) == len(CASES)
    if sys.argv[1:] == ["--check"]:
        with open(path, encoding="utf-8") as f: same = f.read() == text
        if not same: print(f"{path} is not what {os.path.basename(__file__)} writes")
        return 0 if same else 1
    with open(path, "w", encoding="utf-8") as f: f.write(text)
    lines = {re.match(r"fault\.(\d+)", c["id"]).group(1) for c in CASES}
    print(f"{len(CASES)} cases of {len(lines)} faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())
