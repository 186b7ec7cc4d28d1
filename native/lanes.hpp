// SIMD lanes: W numbers that move together, as the compiler's own vector type.
//
// This header is compiled once per instruction set, each time inside its own namespace, and uses no
// standard template: the linker might keep one copy of it, built for a machine that is not this one.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512DQ__)
#include <immintrin.h>
#endif

namespace BEMF_ISA_NAMESPACE {

template <class T> struct IntegerOf;
template <> struct IntegerOf<float> { using type = int32_t; };
template <> struct IntegerOf<double> { using type = int64_t; };

template <class T, int W> struct LanesOf {
    typedef T type __attribute__((vector_size(W * sizeof(T))));
    typedef typename IntegerOf<T>::type mask __attribute__((vector_size(W * sizeof(T))));
};
template <class T, int W> using Lanes = typename LanesOf<T, W>::type;
template <class T, int W> using Mask = typename LanesOf<T, W>::mask;

template <class T, int W> inline Lanes<T, W> same(T value) { return value - Lanes<T, W>{}; }

template <class T, int W> inline Mask<T, W> bits(Lanes<T, W> x) {
    Mask<T, W> out;
    memcpy(&out, &x, sizeof out);
    return out;
}

template <class T, int W> inline Lanes<T, W> from_bits(Mask<T, W> x) {
    Lanes<T, W> out;
    memcpy(&out, &x, sizeof out);
    return out;
}

template <class T> struct Format;
template <> struct Format<float> {
    static constexpr int mantissa_bits = 23;
    static constexpr int32_t sign = INT32_MIN;
    static constexpr int32_t exponent_mask = 0x7f800000;
    static constexpr int32_t one = 0x3f800000;
    static constexpr int exponent_bias = 127;
};
template <> struct Format<double> {
    static constexpr int mantissa_bits = 52;
    static constexpr int64_t sign = INT64_MIN;
    static constexpr int64_t exponent_mask = 0x7ff0000000000000;
    static constexpr int64_t one = 0x3ff0000000000000;
    static constexpr int exponent_bias = 1023;
};

template <class T, int W> inline Lanes<T, W> magnitude(Lanes<T, W> x) {
    return from_bits<T, W>(bits<T, W>(x) & ~Format<T>::sign);
}

// The larger of two of which at least one is not negative: as integers, which then order like the floats they are
// and take one instruction.
template <class T, int W> inline Lanes<T, W> larger(Lanes<T, W> a, Lanes<T, W> b) {
    const Mask<T, W> i = bits<T, W>(a), j = bits<T, W>(b);
    return from_bits<T, W>(i > j ? i : j);
}

// exp(-x), as 2^n times a polynomial for 2^f: relative error below 3e-7, and that of rounding x log2 e.
#if defined(__AVX512DQ__)  // has both halves of this as instructions: f in [0, 1) is what the floor leaves
inline Lanes<float, 16> above_floor(Lanes<float, 16> t) { return _mm512_reduce_ps(t, 9); }
inline Lanes<float, 8> above_floor(Lanes<float, 8> t) { return _mm256_reduce_ps(t, 9); }
inline Lanes<float, 4> above_floor(Lanes<float, 4> t) { return _mm_reduce_ps(t, 9); }
inline Lanes<float, 16> times_2_to_floor(Lanes<float, 16> p, Lanes<float, 16> t) { return _mm512_scalef_ps(p, t); }
inline Lanes<float, 8> times_2_to_floor(Lanes<float, 8> p, Lanes<float, 8> t) { return _mm256_scalef_ps(p, t); }
inline Lanes<float, 4> times_2_to_floor(Lanes<float, 4> p, Lanes<float, 4> t) { return _mm_scalef_ps(p, t); }

template <int W> inline Lanes<float, W> exp_of_minus(Lanes<float, W> x) {
    const Lanes<float, W> t = x * -1.44269504088896341f;
    const Lanes<float, W> f = above_floor(t);
    Lanes<float, W> p = f * 1.8775768992e-3f + 8.9893403036e-3f;
    p = p * f + 5.5826317073e-2f;
    p = p * f + 2.4015361777e-1f;
    p = p * f + 6.9315307303e-1f;
    p = p * f + 9.9999992507e-1f;
    return times_2_to_floor(p, t);
}
#else
template <int W> inline Lanes<float, W> exp_of_minus(Lanes<float, W> x) {
    constexpr float log2e = 1.44269504088896341f;
    constexpr float round = 12582912.0f;  // adding 1.5 * 2^23 leaves the nearest integer in the low bits
    constexpr int32_t farthest = 0x42ae0000;  // 87, as an integer
    const Mask<float, W> sign = bits<float, W>(x) & Format<float>::sign, i = bits<float, W>(x) & ~Format<float>::sign;
    x = from_bits<float, W>((i > farthest ? farthest - Mask<float, W>{} : i) | sign);
    const Lanes<float, W> shifted = round - x * log2e;
    const Lanes<float, W> n = shifted - round;
    const Lanes<float, W> f = -x * log2e - n;
    Lanes<float, W> p = f * 1.3276473573e-3f + 9.6755418813e-3f;
    p = p * f + 5.5507132739e-2f;
    p = p * f + 2.4022119714e-1f;
    p = p * f + 6.9314696706e-1f;
    p = p * f + 1.0000000717f;
    return from_bits<float, W>(bits<float, W>(p) + (bits<float, W>(shifted) << 23));
}
#endif

template <int W> inline Lanes<double, W> exp_of_minus(Lanes<double, W> x) {
    Lanes<double, W> out;
    for (int lane = 0; lane < W; ++lane) out[lane] = ::exp(-x[lane]);
    return out;
}

// Vectors side by side in a wider one, and apart again.
template <int N, int... I> struct Order : Order<N - 1, N - 1, I...> {};
template <int... I> struct Order<0, I...> {
    template <class V> static auto join(V a, V b) { return __builtin_shufflevector(a, b, I...); }
    template <class V> static auto low(V a) { return __builtin_shufflevector(a, a, I...); }
    template <class V> static auto high(V a) { return __builtin_shufflevector(a, a, (I + int(sizeof...(I)))...); }
};

// Element p of the result's P parts is part(p), of W lanes.
template <class T, int W, int P, class Part> inline Lanes<T, W * P> side_by_side(Part part, int from = 0) {
    if constexpr (P == 1) return part(from);
    else
        return Order<W * P>::join(side_by_side<T, W, P / 2>(part, from), side_by_side<T, W, P / 2>(part, from + P / 2));
}

// The P parts of a vector, combined two by two down to W lanes.
template <class T, int W, int P, class Combine> inline Lanes<T, W> fold(Lanes<T, W * P> x, Combine combine) {
    if constexpr (P == 1) return x;
    else
        return fold<T, W, P / 2>(combine(Order<W * P / 2>::low(x), Order<W * P / 2>::high(x)), combine);
}

}  // namespace BEMF_ISA_NAMESPACE
