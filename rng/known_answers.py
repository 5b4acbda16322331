"""Recomputes the lines of rng/known_answers.txt from docs/rng.md, independently of the library.

Philox, uniforms, masks and integers exactly (exact fractions, rounded to nearest even); normals and truncated normals with
mpmath, allowing a few ulps. Run: python3 rng/known_answers.py (needs mpmath); prints one line per failure.
"""

import pathlib
import struct
from fractions import Fraction

from mpmath import cos, erf, erfinv, log, mp, mpf, pi, sin, sqrt

mp.dps = 40
MASK = 0xFFFFFFFF
PRECISION = {"float32": (24, -149), "float64": (53, -1074), "bfloat16": (8, -133), "float16": (11, -24)}


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def block(seed, stream, index):
    return philox([index & MASK, index >> 32, stream & MASK, stream >> 32], [seed & MASK, seed >> 32])


def word32(seed, stream, element):
    return block(seed, stream, element // 4)[element % 4]


def word64(seed, stream, element):
    words = block(seed, stream, element // 2)
    i = 2 * (element % 2)
    return words[i] | words[i + 1] << 32


def exponent_of(x):
    """e with 2^e <= |x| < 2^(e+1)."""
    x, e = abs(x), abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def spacing(x, dtype):
    bits, least = PRECISION[dtype]
    return Fraction(2) ** (least if x == 0 else max(exponent_of(x) - bits + 1, least))


def rounded(x, dtype):
    """To nearest even (round() of a Fraction is)."""
    step = spacing(x, dtype)
    return round(x / step) * step


def decode(bits, dtype):
    if dtype == "float64":
        value = struct.unpack("d", struct.pack("Q", bits))[0]
    elif dtype == "float16":
        value = struct.unpack("e", struct.pack("H", bits))[0]
    else:
        value = struct.unpack("f", struct.pack("I", bits << 16 if dtype == "bfloat16" else bits))[0]
    return Fraction(value)


def uniform(dtype, seed, stream, element, low, high):
    compute = "float64" if dtype == "float64" else "float32"
    if dtype == "float64":
        u = Fraction(word64(seed, stream, element) >> 11, 2**53)
    else:
        u = Fraction(word32(seed, stream, element) >> 8, 2**24)
    value = rounded(u * rounded(Fraction(high - low), compute) + rounded(Fraction(low), compute), compute)
    value = rounded(value, dtype)
    while value >= high:
        value -= spacing(value, dtype)
    while value < low:
        value += spacing(value, dtype)
    return value, 0


def normal(dtype, seed, stream, element, mean, deviation):
    bits = 64 if dtype == "float64" else 32
    word = word64 if dtype == "float64" else word32
    first = element - element % 2
    if bits == 64:  # the two elements of a block share its two 64-bit words
        w0, w1 = word(seed, stream, first), word(seed, stream, first + 1)
    else:
        w0, w1 = word(seed, stream, first), word(seed, stream, first + 1)
    u = rounded(Fraction(w0 >> 1, 2 ** (bits - 1)) + Fraction(1, 2**bits), "float64" if bits == 64 else "float32")
    radius = sqrt(-2 * log(mpf(u.numerator) / u.denominator))
    angle = 2 * pi * mpf(w1) / mpf(2) ** bits
    z = radius * (cos(angle) if element % 2 == 0 else sin(angle))
    return Fraction(str(mpf(mean) + mpf(deviation) * z)), 6


def truncated_normal(dtype, seed, stream, element, mean, deviation, low, high):
    if dtype == "float64":
        u = (mpf(word64(seed, stream, element) >> 12) + 0.5) / mpf(2) ** 52
    else:
        u = (mpf(word32(seed, stream, element)) + 0.5) / mpf(2) ** 32

    def cdf(z):
        return (1 + erf(z / sqrt(2))) / 2

    lower, upper = (mpf(low) - mean) / deviation, (mpf(high) - mean) / deviation
    sign = 1
    if lower + upper > 0:
        lower, upper, sign = -upper, -lower, -1
    p = cdf(lower) + u * (cdf(upper) - cdf(lower))
    z = sign * sqrt(2) * erfinv(2 * p - 1)
    return Fraction(str(mpf(mean) + deviation * z)), 2**14 if dtype == "float64" else 1  # about 1e-12 in float64


def check(line):
    left, values = line.split("=")
    _, dtype, seed, stream, index, name, *parameters = left.split()
    seed, stream, index = int(seed, 16), int(stream, 16), int(index, 16)
    p = [float(x) for x in parameters]
    for i, bits in enumerate(int(v, 16) for v in values.split()):
        element = index + i
        if name == "integers":
            low, high = int(parameters[0]), int(parameters[1])
            expected = low + (word64(seed, stream, element) * (high - low) >> 64)
            good = bits == expected & (2**64 - 1)
        elif name == "bernoulli":
            present = word32(seed, stream, element) < round(Fraction(p[0]) * 2**32)
            value = Fraction(bits) if dtype == "bool" else decode(bits, dtype)
            good = value == (rounded(Fraction(p[1]), "float16" if dtype == "bool" else dtype) if present else 0)
        else:
            draw = {"uniform": uniform, "normal": normal, "truncated_normal": truncated_normal}[name]
            expected, ulps = draw(dtype, seed, stream, element, *p)
            value = decode(bits, dtype)
            scale = max(spacing(expected, dtype), spacing(Fraction(p[1]), dtype) if name == "normal" else 0)
            good = abs(value - expected) <= max(ulps, 1 if ulps else 0) * scale
        if not good:
            yield f"element {element}: {bits:x}"


def main():
    text = pathlib.Path(__file__).with_name("known_answers.txt").read_text()
    lines = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("philox"):
            words = [int(x, 16) for x in line.split()[1:]]
            if philox(words[:4], words[4:6]) != words[6:]:
                print(f"{number}: {line}")
        elif line.startswith("draw"):
            for problem in check(line):
                print(f"{number}: {problem} in {line}")
        else:
            continue
        lines += 1
    print(lines, "lines checked")


main()
