"""Prints the polynomial coefficients and constants of core/elementary_*.h.

Chebyshev interpolation at 60 digits, rounded to the working precision; the last column is the largest error of the
unrounded polynomial on its interval. Run: python3 core/elementary/elementary_fit.py (needs mpmath).
"""

import struct

from mpmath import (
    atanh, chebyfit, cos, erf, erfc, exp, log, log1p, lu_solve, matrix, mp, mpf, pi, polyval, sin, sqrt, tanh
)

mp.dps = 60


def rounded(x, single):
    d = float(x)
    return struct.unpack("f", struct.pack("f", d))[0] if single else d


def literal(x, single):
    """C hexadecimal literal without trailing zeros."""
    mantissa, exponent = rounded(x, single).hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{exponent}{'f' if single else ''}"


def show(name, function, interval, terms, single=False):
    poly, error = chebyfit(function, interval, terms, error=True)
    print(f"{name}: {{{', '.join(literal(c, single) for c in reversed(poly))}}}  // error {float(error):.1e}")



def show_rational(name, function, end, above, below, crowding):
    """A quotient of polynomials that meets the function at Chebyshev's nodes, crowded towards 0."""
    count = above + below + 1
    nodes = [end * ((1 - cos(pi * (2 * k + 1) / (2 * count))) / 2) ** crowding for k in range(count)]
    rows = [[y**j for j in range(above + 1)] + [-function(y) * y**j for j in range(1, below + 1)] for y in nodes]
    solution = lu_solve(matrix(rows), matrix([function(y) for y in nodes]))
    upper, lower = solution[: above + 1], [mpf(1)] + list(solution[above + 1 :])
    quotient = lambda y: polyval(upper[::-1], y) / polyval(lower[::-1], y)  # noqa: E731
    error = max(abs(quotient(end * i / 400) / function(end * i / 400) - 1) for i in range(401))
    for part, poly in (("upper", upper), ("lower", lower)):
        print(f"{name}, {part}: {{{', '.join(literal(c, True) for c in poly)}}}  // relative error {float(error):.1e}")


def safe(closed, series):
    return lambda t: closed(t) if abs(t) > mpf("1e-12") else series(t)


half_ln2 = log(2) / 2 * mpf("1.001")
f_range = [sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1]
quarter = (pi / 4) ** 2 * mpf("1.001")
eighth = (mpf(1) / 8) ** 2
exp_tail = safe(lambda r: (exp(r) - 1 - r) / r**2, lambda r: mpf(1) / 2 + r / 6)
exp2_tail = safe(lambda r: (exp(r * log(2)) - 1 - r * log(2)) / r**2, lambda r: log(2) ** 2 / 2 + r * log(2) ** 3 / 6)
log_tail = safe(lambda f: (log1p(f) - f + f**2 / 2) / f**3, lambda f: mpf(1) / 3 - f / 4)
atanh_tail = safe(lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, lambda z: mpf(2) / 3 + z * 2 / 5)
sin_tail = safe(lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, lambda z: -mpf(1) / 6 + z / 120)
cos_tail = safe(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: mpf(1) / 24 - z / 720)
tanh_tail = safe(lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, lambda z: -mpf(1) / 3 + z * 2 / 15)
erf_small = safe(lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: 2 / sqrt(pi) * (1 - z / 3) - 1)
erf_centre = mpf("1.875")
erf_large = lambda u: -log(erfc(u + erf_centre))  # noqa: E731
erf_range = [mpf("1.05") - erf_centre, 4 - erf_centre]
tau = 2 * pi
sin_turn = safe(lambda z: (sin(tau * sqrt(z)) / sqrt(z) - tau) / z, lambda z: -(tau**3) / 6 + z * tau**5 / 120)
cos_turn = safe(lambda z: (cos(tau * sqrt(z)) - 1) / z, lambda z: -(tau**2) / 2 + z * tau**4 / 24)

print("single precision")
show("exp", exp_tail, [-half_ln2, half_ln2], 6, True)
show("exp2", exp2_tail, [-mpf(1) / 2, mpf(1) / 2], 6, True)
show("log", log_tail, f_range, 10, True)
show("tanh", tanh_tail, [0, mpf("0.3025") * mpf("1.01")], 6, True)
show("sin of turns", sin_turn, [0, eighth], 4, True)
show("cos of turns", cos_turn, [0, eighth], 5, True)
show("erf small", erf_small, [0, mpf("1.5625") * mpf("1.01")], 9, True)
show("erf large", erf_large, erf_range, 11, True)
show_rational("beyond / bell", lambda y: erfc(y / sqrt(2)) / 2 * exp(y * y / 2), mpf(5), 3, 4, mpf("1.7"))
print("double precision, for single-precision results")
show("sin", sin_tail, [0, quarter], 4)
show("cos", cos_tail, [0, quarter], 4)
print("double precision")
show("exp", exp_tail, [-half_ln2, half_ln2], 11)
show("exp2", exp2_tail, [-mpf(1) / 2, mpf(1) / 2], 11)
show("log", atanh_tail, [0, ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.001")], 8)
show("tanh", tanh_tail, [0, mpf("0.3025") * mpf("1.01")], 12)
show("erf small", erf_small, [0, mpf("1.5625") * mpf("1.01")], 17)
show("erf large", erf_large, [mpf("1.05") - erf_centre, 6 - erf_centre], 32)
show("sin", sin_tail, [0, quarter], 6)
show("cos", cos_tail, [0, quarter], 6)
show("sin of turns", sin_turn, [0, eighth], 8)
show("cos of turns", cos_turn, [0, eighth], 8)

print("two over pi, first fraction bit first, in 64-bit words:")
mp.prec = 1500
scaled = int(mpf(2) / pi * mpf(2) ** (64 * 19))
print(", ".join(f"0x{(scaled >> (64 * (18 - i))) & (2**64 - 1):016x}" for i in range(19)))
mp.prec = 300


def parts(x, bits):
    out = []
    for b in bits:
        d = mpf(float(x)) if b == 53 else mpf(int(x * mpf(2) ** b)) / mpf(2) ** b
        out.append(float(d).hex())
        x -= d
    return out


print("pi/2 in three parts:", parts(pi / 2, [53, 53, 53]))
print("ln 2: hi 9 bits + rest single:", literal(mpf(355) / 512, True), literal(log(2) - mpf(355) / 512, True))
print("ln 2: hi 40 bits + rest double:", parts(log(2), [40, 53]))
print("log2 e:", literal(1 / log(2), True), literal(1 / log(2), False))
print("ln 2:", literal(log(2), True), literal(log(2), False), "rest", literal(log(2) - mpf(float(log(2))), False))
